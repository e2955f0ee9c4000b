// The `moov` box: what a file's tracks hold, and where. For one segment as for a day of them: sizes and times that
// outgrow 32 bits get their 64-bit forms. We write the boxes ourselves because timing is what this project is for:
// libavformat's muxer closes a text track with an empty sample of its own, and writes a file a second time to bring
// `moov` to the front.

/// A track's samples, in order, and how they are to be understood.
package struct MP4Track {
  package enum Content {
    /// H.264, with at least one sample description.
    case video([VideoDescription])
    /// UTF-8 texts.
    case timing
  }

  package private(set) var content: Content
  /// Of each sample, in ticks of ``MediaTime/timescale``.
  package private(set) var durations: [UInt32] = []
  /// Of each sample, in bytes.
  package private(set) var sizes: [UInt32] = []
  /// Contiguous samples with one sample description, whose index counts from 1.
  package private(set) var chunks: [(offset: UInt64, samples: Int, description: Int)] = []
  /// The samples that are key frames, counted from 1.
  package private(set) var keys: [UInt32] = []

  package init(_ content: Content) { self.content = content }

  /// A video track whose samples follow.
  package init(_ description: VideoDescription) { self.init(.video([description])) }

  package var duration: UInt64 { durations.reduce(0) { $0 + UInt64($1) } }

  /// An upper bound of what `samples` in `chunks` add to `moov`, in bytes.
  package static func tableSize(samples: Int, chunks: Int) -> Int { 12 * samples + 24 * chunks }

  /// Adds samples that lie one behind the other from `offset` on; the first is a key frame.
  ///
  /// - Parameter description: of video; nil for the description of the samples before.
  package mutating func append(_ samples: [Sample], at offset: UInt64, as description: VideoDescription? = nil) {
    keys.append(UInt32(sizes.count + 1))
    chunks.append((offset, samples.count, description.map { number(of: $0) } ?? chunks.last?.description ?? 1))
    for sample in samples {
      durations.append(UInt32(sample.duration))
      sizes.append(UInt32(sample.data.count))
    }
  }
}

extension MP4Track {
  /// Subtracts a number of bytes from all chunk offsets.
  package mutating func move(by bytes: Int) {
    for index in chunks.indices { chunks[index].offset -= UInt64(bytes) }
  }

  /// Returns the index of a description, counted from 1. A new description is added.
  private mutating func number(of description: VideoDescription) -> Int {
    guard case .video(var descriptions) = content else { return 1 }
    if let index = descriptions.firstIndex(of: description) { return index + 1 }
    descriptions.append(description)
    content = .video(descriptions)
    return descriptions.count
  }
}

/// A place in a film that a player can jump to.
package struct Chapter: Equatable {
  /// From the film's start.
  package let startMs: Int64
  package let title: String

  package init(startMs: Int64, title: String) {
    self.startMs = startMs
    self.title = title
  }
}

package struct MP4Movie {
  package let tracks: [MP4Track]
  package var chapters: [Chapter] = []
  /// Unix milliseconds of the first capture; nil in a segment, whose file name has it.
  package var startMs: Int64?
  /// Whether the samples follow in fragments, and none is listed here.
  var isFragmented = false

  package init(tracks: [MP4Track], chapters: [Chapter] = [], startMs: Int64? = nil, isFragmented: Bool = false) {
    self.tracks = tracks
    self.chapters = chapters
    self.startMs = startMs
    self.isFragmented = isFragmented
  }

  /// `ftyp`.
  package static var fileType: [UInt8] { fileType("ftyp", ["isom", "iso2", "avc1", "mp41"], version: 0x200) }

  /// `ftyp`, or `styp` before a fragment; the first brand is the major one.
  package static func fileType(_ type: String, _ brands: [String], version: UInt32 = 0) -> [UInt8] {
    var file = MP4Box()
    file.box(type) { box in
      box.ascii(brands[0])
      box.u32(version)
      for brand in brands { box.ascii(brand) }
    }
    return file.bytes
  }

  /// `moov`.
  package var bytes: [UInt8] {
    let duration = tracks.map(\.duration).max() ?? 0
    // Whole seconds since 1904 (ISO/IEC 14496-12, 8.2.2.3).
    let creation = startMs.map { UInt64(max(0, $0 / 1_000 + 2_082_844_800)) } ?? 0
    var file = MP4Box()
    file.box("moov") { moov in
      moov.versionedBox("mvhd", for: max(duration, creation)) { box, long in
        for _ in 0..<2 { box.time(creation, long) }  // and modification
        box.u32(UInt32(MediaTime.timescale))
        box.time(duration, long)
        box.u32(0x10000)  // rate 1
        box.u16(0x100)  // volume 1
        box.zeros(10)
        box.identityMatrix()
        box.zeros(24)
        box.u32(UInt32(tracks.count + 1))
      }
      for (index, track) in tracks.enumerated() {
        moov.box("trak") { $0.track(track, id: UInt32(index + 1), movieDuration: duration) }
      }
      if isFragmented { moov.box("mvex") { $0.trackDefaults(tracks.count) } }
      if !chapters.isEmpty { moov.box("udta") { $0.chapterList(chapters) } }
    }
    return file.bytes
  }
}

extension MP4Box {
  /// `chpl`, as Nero defined it and stock tools read it: at most 255 chapters, in units of 100 ns.
  fileprivate mutating func chapterList(_ chapters: [Chapter]) {
    fullBox("chpl", version: 1) { box in
      box.u32(0)
      box.u8(UInt8(min(chapters.count, 255)))
      for chapter in chapters.prefix(255) {
        box.u64(UInt64(chapter.startMs) * 10_000)
        let title = Array(chapter.title.utf8.prefix(255))
        box.u8(UInt8(title.count))
        box.append(title)
      }
    }
  }

  /// `trex`: each fragment says all for itself.
  fileprivate mutating func trackDefaults(_ tracks: Int) {
    for id in 1...tracks {
      fullBox("trex") { box in
        box.u32(UInt32(id))
        box.u32(1)  // sample description
        box.zeros(12)
      }
    }
  }

  fileprivate mutating func identityMatrix() {
    for value: UInt32 in [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000] { u32(value) }
  }

  /// A box whose times have 64 bits where 32 are not enough.
  fileprivate mutating func versionedBox(
    _ type: String, flags: UInt32 = 0, for duration: UInt64, _ body: (inout MP4Box, Bool) -> Void
  ) {
    let long = duration > UInt64(UInt32.max)
    fullBox(type, version: long ? 1 : 0, flags: flags) { body(&$0, long) }
  }

  fileprivate mutating func time(_ value: UInt64, _ long: Bool) {
    if long { u64(value) } else { u32(UInt32(value)) }
  }

  fileprivate mutating func track(_ track: MP4Track, id: UInt32, movieDuration: UInt64) {
    var (width, height) = (0, 0)
    // The timing track is in the movie, but not enabled: players must not show it over the picture.
    var flags: UInt32 = 2
    if case .video(let descriptions) = track.content {
      (width, height, flags) = (descriptions[0].width, descriptions[0].height, 3)
    }
    versionedBox("tkhd", flags: flags, for: movieDuration) { box, long in
      box.zeros(long ? 16 : 8)
      box.u32(id)
      box.u32(0)
      box.time(movieDuration, long)
      box.zeros(16)  // layer, group, volume
      box.identityMatrix()
      box.u32(UInt32(width) << 16)
      box.u32(UInt32(height) << 16)
    }
    box("mdia") { $0.media(track) }
  }

  private mutating func media(_ track: MP4Track) {
    let handler = if case .video = track.content { ("vide", "Video") } else { ("sbtl", "Timing") }
    versionedBox("mdhd", for: track.duration) { box, long in
      box.zeros(long ? 16 : 8)
      box.u32(UInt32(MediaTime.timescale))
      box.time(track.duration, long)
      box.u16(0x55C4)  // language: und
      box.u16(0)
    }
    fullBox("hdlr") { box in
      box.u32(0)
      box.ascii(handler.0)
      box.zeros(12)
      box.ascii(handler.1)
      box.u8(0)
    }
    box("minf") { info in
      if case .video = track.content {
        info.fullBox("vmhd", flags: 1) { $0.zeros(8) }
      } else {
        info.fullBox("nmhd") { _ in }
      }
      info.box("dinf") { box in
        box.fullBox("dref") { box in
          box.u32(1)
          box.fullBox("url ", flags: 1) { _ in }
        }
      }
      info.box("stbl") { table in
        table.fullBox("stsd") { box in
          switch track.content {
          case .video(let descriptions):
            box.u32(UInt32(descriptions.count))
            for description in descriptions { box.videoDescription(description) }
          case .timing:
            box.u32(1)
            box.textDescription()
          }
        }
        table.sampleTables(track)
      }
    }
  }

  /// Durations, key frames, sizes and places.
  private mutating func sampleTables(_ track: MP4Track) {
    let durations = runs(track.durations)
    fullBox("stts") { box in
      box.u32(UInt32(durations.count))
      for run in durations {
        box.u32(UInt32(run.count))
        box.u32(run.value)
      }
    }
    if case .video = track.content, !track.keys.isEmpty {
      fullBox("stss") { box in
        box.u32(UInt32(track.keys.count))
        for key in track.keys { box.u32(key) }
      }
    }
    let chunks = runs(track.chunks.map { ChunkForm(samples: $0.samples, description: $0.description) })
    fullBox("stsc") { box in
      box.u32(UInt32(chunks.count))
      var first: UInt32 = 1
      for run in chunks {
        box.u32(first)
        box.u32(UInt32(run.value.samples))
        box.u32(UInt32(run.value.description))
        first += UInt32(run.count)
      }
    }
    fullBox("stsz") { box in
      box.u32(0)
      box.u32(UInt32(track.sizes.count))
      for size in track.sizes { box.u32(size) }
    }
    let offsets = track.chunks.map(\.offset)
    if offsets.last ?? 0 <= UInt64(UInt32.max) {
      fullBox("stco") { box in
        box.u32(UInt32(offsets.count))
        for offset in offsets { box.u32(UInt32(offset)) }
      }
    } else {
      fullBox("co64") { box in
        box.u32(UInt32(offsets.count))
        for offset in offsets { box.u64(offset) }
      }
    }
  }

  /// The properties of a chunk that `stsc` lists once for a run of equal chunks.
  private struct ChunkForm: Equatable {
    let samples: Int
    let description: Int
  }

  private func runs<T: Equatable>(_ values: [T]) -> [(count: Int, value: T)] {
    var result: [(count: Int, value: T)] = []
    for value in values {
      if result.last?.value == value { result[result.count - 1].count += 1 } else { result.append((1, value)) }
    }
    return result
  }
}
