// The `moov` box of a segment, a film of a whole day, or an initialization. Sizes and times that exceed 32 bits get their
// 64-bit forms. We write the boxes ourselves because times must be exact: libavformat's muxer adds an empty sample to a text
// track, and writes a file twice to put `moov` first.

/// The samples of a track, in order.
package struct MP4Track {
  package enum Kind {
    /// H.264 pictures.
    case video
    /// A text for each picture that was captured.
    case timing
    /// Texts that players show.
    case captions
  }

  let kind: Kind
  /// The sample descriptions of a video track.
  private(set) var descriptions: [VideoDescription]
  /// The duration of each sample, in ticks of ``MediaTime/timescale``.
  private(set) var durations: [UInt32] = []
  /// The size of each sample, in bytes.
  private(set) var sizes: [UInt32] = []
  /// Contiguous samples with one sample description, whose index counts from 1.
  private(set) var chunks: [(offset: UInt64, samples: Int, description: Int)] = []
  /// The samples that are key frames, counted from 1.
  private(set) var keys: [UInt32] = []

  package init(_ kind: Kind, descriptions: [VideoDescription] = []) {
    self.kind = kind
    self.descriptions = descriptions
  }

  var isVideo: Bool { kind == .video }

  var duration: UInt64 { durations.reduce(0) { $0 + UInt64($1) } }

  /// An upper bound of the bytes that `samples` in `chunks` add to `moov`.
  ///
  /// - Parameter keys: the number of key frames besides the first ones of the chunks.
  package static func tableSize(samples: Int, chunks: Int, keys: Int) -> Int { 12 * samples + 24 * chunks + 4 * keys }

  /// Adds contiguous samples from `offset` on.
  ///
  /// - Parameters:
  ///   - description: of video.
  ///   - isContinued: whether the first sample refers to samples before it; else it is a key frame in any case.
  package mutating func append(
    _ samples: [Sample], at offset: UInt64, as description: VideoDescription? = nil, isContinued: Bool = false
  ) {
    if let description, !descriptions.contains(description) { descriptions.append(description) }
    let index = descriptions.firstIndex { $0 == description } ?? 0
    for (index, sample) in samples.enumerated() where index == 0 && !isContinued || sample.isKey {
      keys.append(UInt32(sizes.count + index + 1))
    }
    chunks.append((offset, samples.count, index + 1))
    for sample in samples {
      durations.append(UInt32(sample.duration))
      sizes.append(UInt32(sample.data.count))
    }
  }

  /// Subtracts a number of bytes from all chunk offsets.
  package mutating func move(by bytes: Int) {
    for index in chunks.indices { chunks[index].offset -= UInt64(bytes) }
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

package enum MP4Movie {
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

  /// Returns `moov`.
  ///
  /// - Parameters:
  ///   - startMs: unix milliseconds of the first capture; nil in a segment, whose file name has it.
  ///   - isFragmented: whether the samples follow in fragments.
  package static func bytes(
    of tracks: [MP4Track], chapters: [Chapter] = [], startMs: Int64? = nil, isFragmented: Bool = false
  ) -> [UInt8] {
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
      // Sample description 1, no defaults: each fragment has its own values.
      if isFragmented {
        moov.box("mvex") { box in
          for id in 1...UInt32(tracks.count) { box.fullBox("trex") { $0.u32(id, 1, 0, 0, 0) } }
        }
      }
      if !chapters.isEmpty { moov.box("udta") { $0.chapterList(chapters) } }
    }
    return file.bytes
  }
}

extension MP4Box {
  /// `chpl`, defined by Nero and read by stock tools: at most 255 chapters, in units of 100 ns.
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

  fileprivate mutating func identityMatrix() {
    u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000)
  }

  /// Writes a box whose times have 64 bits where 32 are too few.
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
    let description = track.descriptions.first
    // The timing track is in the movie, but not enabled: players must not show it over the picture.
    versionedBox("tkhd", flags: track.kind == .timing ? 2 : 3, for: movieDuration) { box, long in
      box.zeros(long ? 16 : 8)
      box.u32(id, 0)
      box.time(movieDuration, long)
      box.zeros(16)  // layer, group, volume
      box.identityMatrix()
      box.u32(UInt32(description?.width ?? 0) << 16, UInt32(description?.height ?? 0) << 16)
    }
    box("mdia") { $0.media(track) }
  }

  private mutating func media(_ track: MP4Track) {
    let (handler, name) =
      switch track.kind {
      case .video: ("vide", "Video")
      case .timing: ("sbtl", "Timing")
      case .captions: ("sbtl", "Captions")
      }
    versionedBox("mdhd", for: track.duration) { box, long in
      box.zeros(long ? 16 : 8)
      box.u32(UInt32(MediaTime.timescale))
      box.time(track.duration, long)
      box.u16(0x55C4)  // language: und
      box.u16(0)
    }
    fullBox("hdlr") { box in
      box.u32(0)
      box.ascii(handler)
      box.zeros(12)
      box.ascii(name)
      box.u8(0)
    }
    box("minf") { info in
      if track.isVideo {
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
          if track.isVideo {
            box.u32(UInt32(track.descriptions.count))
            for description in track.descriptions { box.videoDescription(description) }
          } else {
            box.u32(1)
            box.textDescription()
          }
        }
        table.sampleTables(track)
      }
    }
  }

  /// Writes durations, key frames, chunks, sizes and offsets.
  private mutating func sampleTables(_ track: MP4Track) {
    let durations = runs(track.durations, ==)
    table("stts", rows: durations.count, durations.flatMap { [UInt32($0.count), $0.value] })
    if track.isVideo, !track.keys.isEmpty { table("stss", rows: track.keys.count, track.keys) }
    let chunks = runs(track.chunks) { ($0.samples, $0.description) == ($1.samples, $1.description) }
    var first: UInt32 = 1
    let rows = chunks.flatMap { run in
      defer { first += UInt32(run.count) }
      return [first, UInt32(run.value.samples), UInt32(run.value.description)]
    }
    table("stsc", rows: chunks.count, rows)
    fullBox("stsz") { box in
      box.u32(0, UInt32(track.sizes.count))
      for size in track.sizes { box.u32(size) }
    }
    let offsets = track.chunks.map(\.offset)
    if offsets.last ?? 0 <= UInt64(UInt32.max) {
      table("stco", rows: offsets.count, offsets.map { UInt32($0) })
    } else {
      fullBox("co64") { box in
        box.u32(UInt32(offsets.count))
        for offset in offsets { box.u64(offset) }
      }
    }
  }

  private mutating func table(_ type: String, rows: Int, _ numbers: [UInt32]) {
    fullBox(type) { box in
      box.u32(UInt32(rows))
      for number in numbers { box.u32(number) }
    }
  }

  private func runs<T>(_ values: [T], _ areEqual: (T, T) -> Bool) -> [(count: Int, value: T)] {
    var result: [(count: Int, value: T)] = []
    for value in values {
      if let last = result.last?.value, areEqual(last, value) {
        result[result.count - 1].count += 1
      } else {
        result.append((1, value))
      }
    }
    return result
  }
}
