// Fragments of a video track (ISO/IEC 14496-12, 8.8) as CMAF has them (ISO/IEC 23000-19): one file that says how the
// samples are to be decoded, and one a segment with its samples at their place in the session.

/// A captured frame, told to players as an event (`emsg`, ISO/IEC 23009-1, 5.10.3.3).
package struct CaptureEvent {
  /// From the session's start, in ticks.
  package let start: Int64
  package let duration: Int64
  /// JSON, as on the timing track.
  package let text: [UInt8]

  package init(start: Int64, duration: Int64, text: [UInt8]) {
    self.start = start
    self.duration = duration
    self.text = text
  }
}

package struct MP4Fragment {
  /// Names the events' meaning.
  static let eventScheme = "urn:segment-encoder:capture:1"

  /// From the session's start.
  package let startMs: Int64
  /// The first one, and no other, is a key frame.
  package let samples: [Sample]
  package let events: [CaptureEvent]

  package init(startMs: Int64, samples: [Sample], events: [CaptureEvent]) {
    self.startMs = startMs
    self.samples = samples
    self.events = events
  }

  /// The initialization of all fragments with the same parameter sets.
  package static func initialization(_ description: VideoDescription) -> [UInt8] {
    let track = MP4Track(description)
    return MP4Movie.fileType("ftyp", ["iso6", "cmfc", "mp41"]) + MP4Movie(tracks: [track], isFragmented: true).bytes
  }

  /// A fragment in which nothing is shown, for readers that ask for what a playlist says is not there.
  package static var empty: [UInt8] { MP4Movie.fileType("styp", ["msdh", "cmfs"]) }

  /// The part of the file that a player needs for the key frame alone: the box that describes the samples, and the first.
  package var keyFrame: Range<Int> {
    let start = head.count
    return start..<start + movie(dataOffset: 0).count + 8 + (samples.first?.data.count ?? 0)
  }

  /// The size of the whole file.
  package var size: Int { keyFrame.upperBound + samples.dropFirst().reduce(0) { $0 + $1.data.count } }

  /// The bytes before the description of the samples.
  private var head: [UInt8] {
    var file = MP4Box()
    file.append(Self.empty)
    for event in events { file.event(event) }
    return file.bytes
  }

  /// The whole file.
  package var bytes: [UInt8] {
    var file = MP4Box()
    file.append(head)
    // Where the samples lie depends on the size of the box that says so, which does not depend on it.
    let size = movie(dataOffset: 0).count
    file.append(movie(dataOffset: UInt32(size + 8)))
    file.box("mdat") { box in
      for sample in samples { box.append(sample.data) }
    }
    return file.bytes
  }

  /// - Parameter dataOffset: from this box's start to the first sample.
  private func movie(dataOffset: UInt32) -> [UInt8] {
    var file = MP4Box()
    file.box("moof") { moof in
      // Rises from fragment to fragment, whatever comes between them later.
      moof.fullBox("mfhd") { $0.u32(UInt32(truncatingIfNeeded: startMs + 1)) }
      moof.box("traf") { track in
        // Offsets count from this box (0x20000); flags of a sample that depends on others (0x20).
        track.fullBox("tfhd", flags: 0x20020) { box in
          box.u32(1)
          box.u32(0x0101_0000)
        }
        track.fullBox("tfdt", version: 1) { $0.u64(UInt64(MediaTime.ticks(ms: startMs))) }
        // Data offset, the first sample's flags, durations, sizes.
        track.fullBox("trun", flags: 0x1 | 0x4 | 0x100 | 0x200) { box in
          box.u32(UInt32(samples.count))
          box.u32(dataOffset)
          box.u32(0x0200_0000)  // depends on none
          for sample in samples {
            box.u32(UInt32(sample.duration))
            box.u32(UInt32(sample.data.count))
          }
        }
      }
    }
    return file.bytes
  }
}

extension MP4Box {
  fileprivate mutating func event(_ event: CaptureEvent) {
    fullBox("emsg", version: 1) { box in
      box.u32(UInt32(MediaTime.timescale))
      box.u64(UInt64(event.start))
      box.u32(UInt32(event.duration))
      box.u32(UInt32(truncatingIfNeeded: event.start / MediaTime.ticks(ms: 1)))  // tells it from others
      box.ascii(MP4Fragment.eventScheme)
      box.zeros(2)  // ends the scheme; an empty value
      box.append(event.text)
    }
  }
}
