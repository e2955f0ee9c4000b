// One segment as a self-contained MP4: `moov` before `mdat`, a video track and the timing track. ``SegmentReadback`` reads the
// result back before it is published.

/// One sample of a track.
package struct Sample {
  /// Ticks of ``MediaTime/timescale``; more than zero.
  package let duration: Int64
  package let data: [UInt8]
  /// Whether it is a key frame. The first sample of a segment is always one.
  package let isKey: Bool

  package init(duration: Int64, data: [UInt8], isKey: Bool = false) {
    self.duration = duration
    self.data = data
    self.isKey = isKey
  }

  package func lasting(_ duration: Int64) -> Sample { Sample(duration: duration, data: data, isKey: isKey) }
}

package struct MP4File {
  /// Pixels as coded, even.
  package let width: Int
  package let height: Int
  package let parameterSets: ParameterSets
  package let colour: VideoColour?
  /// The first sample is a key frame; in our own segments it is the only one.
  package let video: [Sample]
  /// UTF-8 texts; their durations add up to the video's.
  package let timing: [Sample]

  package init(
    width: Int, height: Int, parameterSets: ParameterSets, colour: VideoColour? = .screen, video: [Sample],
    timing: [Sample]
  ) {
    self.width = width
    self.height = height
    self.parameterSets = parameterSets
    self.colour = colour
    self.video = video
    self.timing = timing
  }

  package var bytes: [UInt8] {
    let head = MP4Movie.fileType
    // The size of `moov` does not depend on the offsets in it.
    let movieSize = movie(from: 0).count
    var file = MP4Box()
    file.append(head)
    file.append(movie(from: UInt64(head.count + movieSize + 8)))
    file.box("mdat") { box in
      for sample in timing { box.append(sample.data) }
      for sample in video { box.append(sample.data) }
    }
    return file.bytes
  }

  /// - Parameter offset: where the first sample lies.
  private func movie(from offset: UInt64) -> [UInt8] {
    var (pictures, texts) = (MP4Track(.video), MP4Track(.timing))
    texts.append(timing, at: offset)
    pictures.append(
      video, at: offset + timing.reduce(0) { $0 + UInt64($1.data.count) },
      as: VideoDescription(width: width, height: height, parameterSets: parameterSets, colour: colour))
    return MP4Movie.bytes(of: [pictures, texts])
  }
}
