// One segment as a self-contained MP4: `moov` before `mdat`, a video track and the timing track, every duration written
// as it is. The result is read back before it is published (``SegmentReadback``).

/// One sample of a track.
package struct Sample {
  /// Ticks of ``MediaTime/timescale``; more than zero.
  package let duration: Int64
  package let data: [UInt8]

  package init(duration: Int64, data: [UInt8]) {
    self.duration = duration
    self.data = data
  }
}

package struct MP4File {
  /// Pixels as coded, even.
  package let width: Int
  package let height: Int
  package let parameterSets: ParameterSets
  /// The first one, and no other, is a key frame.
  package let video: [Sample]
  /// UTF-8 texts; their durations add up to the video's.
  package let timing: [Sample]

  package init(width: Int, height: Int, parameterSets: ParameterSets, video: [Sample], timing: [Sample]) {
    self.width = width
    self.height = height
    self.parameterSets = parameterSets
    self.video = video
    self.timing = timing
  }

  /// The whole file.
  package var bytes: [UInt8] {
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
