import FileSystem

/// The samples of a segment's video, unchecked, in the order in which they are stored.
package struct StoredSamples {
  package struct Stored {
    package let track: Int
    package let pts: Int64
    package let duration: Int64
    package var data: [UInt8]
  }

  /// The `avcC` of the first track; nil if it is not H.264.
  package let configuration: [UInt8]?
  package let samples: [Stored]
}

extension StoredSamples {
  /// - Throws: ``FFmpegError``; ``BadSession`` if the file has more than two tracks.
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
