// One segment as a self-contained MP4: `moov` before `mdat`, a video track and the timing track, every duration written
// as it is. What comes out is read back before it is published (``SegmentCheck``).

/// One sample of a track.
struct Sample {
  /// Ticks of ``MediaTime/timescale``; more than zero.
  let duration: Int64
  let data: [UInt8]
}

struct MP4File {
  /// Pixels as coded, even.
  let width: Int
  let height: Int
  let parameterSets: ParameterSets
  /// The first one, and no other, is a key frame.
  let video: [Sample]
  /// UTF-8 texts; their durations add up to the video's.
  let timing: [Sample]

  /// The whole file.
  var bytes: [UInt8] {
    let head = MP4Movie.fileType
    // The places of the samples depend on the size of the boxes that tell them, which does not depend on them.
    let sizeOfMovie = movie(from: 0).count
    var file = MP4Box()
    file.append(head)
    file.append(movie(from: UInt64(head.count + sizeOfMovie + 8)))
    file.box("mdat") { box in
      for sample in timing { box.append(sample.data) }
      for sample in video { box.append(sample.data) }
    }
    return file.bytes
  }

  /// - Parameter offset: where the first sample lies.
  private func movie(from offset: UInt64) -> [UInt8] {
    var pictures = MP4Track(VideoDescription(width: width, height: height, parameterSets: parameterSets))
    var texts = MP4Track(.timing)
    texts.append(timing, at: offset)
    pictures.append(video, at: offset + timing.reduce(0) { $0 + UInt64($1.data.count) })
    return MP4Movie(tracks: [pictures, texts]).bytes
  }
}
