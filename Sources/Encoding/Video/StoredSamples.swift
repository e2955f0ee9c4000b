/// The samples of a segment's file in the order they are stored, and nothing checked.
struct StoredSamples {
  struct Stored {
    let track: Int
    let pts: Int64
    let duration: Int64
    var data: [UInt8]
  }

  /// The first track's `avcC`; nil where that is no H.264.
  let configuration: [UInt8]?
  let samples: [Stored]
}

extension StoredSamples {
  /// - Throws: ``FFmpegError``, ``BadSession`` when it has more than two tracks.
  init(of file: any ByteSource, _ name: String) throws {
    let reader = try MP4Reader(file)
    var samples: [Stored] = []
    while let sample = try reader.next() {
      guard (0...1).contains(sample.track) else { throw BadSession(name, "more than two tracks") }
      samples.append(
        Stored(track: sample.track, pts: sample.pts, duration: sample.duration, data: Array(sample.bytes)))
    }
    self.init(configuration: reader.configuration, samples: samples)
  }
}
