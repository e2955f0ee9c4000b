// Fragments of a video track (ISO/IEC 14496-12, 8.8) as CMAF has them (ISO/IEC 23000-19): one initialization that says how to
// decode the samples, and one fragment a segment with its samples at their time in the session.

package struct MP4Fragment {
  /// Names the events' meaning.
  static let eventScheme = "urn:segment-encoder:capture:1"

  /// From the session's start.
  let startMs: Int64
  /// Only the first sample is a key frame.
  let video: [Sample]
  /// The samples of the timing track. Players get them as events (`emsg`, ISO/IEC 23009-1, 5.10.3.3).
  let timing: [Sample]

  package init(startMs: Int64, video: [Sample], timing: [Sample]) {
    self.startMs = startMs
    self.video = video
    self.timing = timing
  }

  /// The initialization of all fragments with the same parameter sets.
  package static func initialization(_ description: VideoDescription) -> [UInt8] {
    MP4Movie.fileType("ftyp", ["iso6", "cmfc", "mp41"])
      + MP4Movie.bytes(of: [MP4Track(.video, descriptions: [description])], isFragmented: true)
  }

  /// A fragment without samples, for readers that request the file of a gap.
  package static var empty: [UInt8] { MP4Movie.fileType("styp", ["msdh", "cmfs"]) }

  /// The bytes that a player needs for the key frame alone: `moof`, and the first sample in `mdat`.
  package var keyFrame: Range<Int> {
    let start = head.count
    return start..<start + movie(dataOffset: 0).count + 8 + (video.first?.data.count ?? 0)
  }

  /// The size of the whole file, in bytes.
  package var size: Int { keyFrame.upperBound + video.dropFirst().reduce(0) { $0 + $1.data.count } }

  /// The bytes before `moof`.
  private var head: [UInt8] {
    var file = MP4Box()
    file.append(Self.empty)
    var start = MediaTime.ticks(ms: startMs)
    for sample in timing {
      file.event(sample, at: start)
      start += sample.duration
    }
    return file.bytes
  }

  package var bytes: [UInt8] {
    var file = MP4Box()
    file.append(head)
    // The size of `moof` does not depend on the offset in it.
    let size = movie(dataOffset: 0).count
    file.append(movie(dataOffset: UInt32(size + 8)))
    file.box("mdat") { box in
      for sample in video { box.append(sample.data) }
    }
    return file.bytes
  }

  /// - Parameter dataOffset: from this box's start to the first sample.
  private func movie(dataOffset: UInt32) -> [UInt8] {
    var file = MP4Box()
    file.box("moof") { moof in
      // The sequence number rises from fragment to fragment, even when a segment comes between two of them later.
      moof.fullBox("mfhd") { $0.u32(UInt32(truncatingIfNeeded: startMs + 1)) }
      moof.box("traf") { track in
        // Offsets count from this box (0x20000); flags of a sample that depends on others (0x20).
        track.fullBox("tfhd", flags: 0x20020) { $0.u32(1, 0x0101_0000) }
        track.fullBox("tfdt", version: 1) { $0.u64(UInt64(MediaTime.ticks(ms: startMs))) }
        // Data offset, the first sample's flags, durations, sizes.
        track.fullBox("trun", flags: 0x1 | 0x4 | 0x100 | 0x200) { box in
          box.u32(UInt32(video.count), dataOffset, 0x0200_0000)  // depends on no other sample
          for sample in video { box.u32(UInt32(sample.duration), UInt32(sample.data.count)) }
        }
      }
    }
    return file.bytes
  }
}

extension MP4Box {
  /// - Parameters:
  ///   - sample: of the timing track: JSON behind its length in 2 bytes.
  ///   - start: from the session's start, in ticks.
  fileprivate mutating func event(_ sample: Sample, at start: Int64) {
    fullBox("emsg", version: 1) { box in
      box.u32(UInt32(MediaTime.timescale))
      box.u64(UInt64(start))
      box.u32(UInt32(sample.duration))
      box.u32(UInt32(truncatingIfNeeded: start / MediaTime.ticks(ms: 1)))  // id
      box.ascii(MP4Fragment.eventScheme)
      box.zeros(2)  // ends the scheme; an empty value
      box.append(sample.data.dropFirst(2))
    }
  }
}
