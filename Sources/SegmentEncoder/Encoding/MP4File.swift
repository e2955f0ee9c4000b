// One segment as a self-contained MP4: `moov` before `mdat`, a video track and the timing track, every duration
// written as it is. We write the boxes ourselves because timing is what this project is for: libavformat's muxer
// closes a text track with an empty sample of its own, measures instead of being told how long the last sample is,
// and writes the file a second time to bring `moov` to the front. What comes out is read back with libavformat's
// demuxer before it is published (``SegmentCheck``).

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
  let parameterSets: (sequence: [UInt8], picture: [UInt8])
  /// The first one, and no other, is a key frame.
  let video: [Sample]
  /// UTF-8 texts; their durations add up to the video's.
  let timing: [Sample]

  /// The `codecs` parameter of RFC 6381: profile, constraints and level of the sequence parameter set.
  var codec: String {
    "avc1."
      + parameterSets.sequence[1...3].map { byte in
        let digits = String(byte, radix: 16, uppercase: true)
        return digits.count == 1 ? "0" + digits : digits
      }.joined()
  }

  /// The whole file.
  var bytes: [UInt8] {
    let head = fileType
    // The offsets of the samples depend on the size of the boxes that hold them, which does not depend on them.
    let sizeOfMovie = movie(timingOffset: 0, videoOffset: 0).count
    let timingOffset = head.count + sizeOfMovie + 8
    let videoOffset = timingOffset + timing.reduce(0) { $0 + $1.data.count }
    var file = MP4Box()
    file.append(head)
    file.append(movie(timingOffset: UInt32(timingOffset), videoOffset: UInt32(videoOffset)))
    file.box("mdat") { box in
      for sample in timing { box.append(sample.data) }
      for sample in video { box.append(sample.data) }
    }
    return file.bytes
  }

  private var duration: UInt32 { UInt32(video.reduce(0) { $0 + $1.duration }) }

  private var fileType: [UInt8] {
    var file = MP4Box()
    file.box("ftyp") { box in
      box.ascii("isom")
      box.u32(0x200)
      for brand in ["isom", "iso2", "avc1", "mp41"] { box.ascii(brand) }
    }
    return file.bytes
  }

  private func movie(timingOffset: UInt32, videoOffset: UInt32) -> [UInt8] {
    var file = MP4Box()
    file.box("moov") { moov in
      moov.fullBox("mvhd") { box in
        box.zeros(8)  // creation and modification: the file's name has the instant
        box.u32(UInt32(MediaTime.timescale))
        box.u32(duration)
        box.u32(0x10000)  // rate 1
        box.u16(0x100)  // volume 1
        box.zeros(10)
        box.identityMatrix()
        box.zeros(24)
        box.u32(3)  // next track
      }
      moov.box("trak") { track in
        track.trackHeader(id: 1, flags: 3, duration: duration, width: width, height: height)
        media(of: &track, handler: "vide", name: "Video", samples: video, offset: videoOffset)
      }
      moov.box("trak") { track in
        // In the movie, but not enabled: players must not show it over the picture.
        track.trackHeader(id: 2, flags: 2, duration: duration, width: 0, height: 0)
        media(of: &track, handler: "sbtl", name: "Timing", samples: timing, offset: timingOffset)
      }
    }
    return file.bytes
  }

  private func media(of track: inout MP4Box, handler: String, name: String, samples: [Sample], offset: UInt32) {
    let isVideo = handler == "vide"
    track.box("mdia") { media in
      media.fullBox("mdhd") { box in
        box.zeros(8)
        box.u32(UInt32(MediaTime.timescale))
        box.u32(duration)
        box.u16(0x55C4)  // language: und
        box.u16(0)
      }
      media.fullBox("hdlr") { box in
        box.u32(0)
        box.ascii(handler)
        box.zeros(12)
        box.ascii(name)
        box.u8(0)
      }
      media.box("minf") { info in
        if isVideo {
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
            box.u32(1)
            if isVideo { videoDescription(&box) } else { box.textDescription() }
          }
          table.sampleTables(samples, offset: offset, firstIsOnlyKey: isVideo)
        }
      }
    }
  }

  /// `avc1` (ISO/IEC 14496-15, 5.4.2).
  private func videoDescription(_ description: inout MP4Box) {
    description.box("avc1") { entry in
      entry.zeros(6)
      entry.u16(1)  // data reference
      entry.zeros(16)
      entry.u16(UInt16(width))
      entry.u16(UInt16(height))
      entry.u32(0x48_0000)  // 72 dpi
      entry.u32(0x48_0000)
      entry.u32(0)
      entry.u16(1)  // frames a sample
      entry.zeros(32)  // compressor's name
      entry.u16(24)  // depth
      entry.u16(0xFFFF)
      entry.box("avcC") { box in
        box.u8(1)
        box.append(parameterSets.sequence[1...3])
        box.u8(0xFC | 3)  // NAL units behind 4 bytes of length
        box.u8(0xE0 | 1)
        box.u16(UInt16(parameterSets.sequence.count))
        box.append(parameterSets.sequence)
        box.u8(1)
        box.u16(UInt16(parameterSets.picture.count))
        box.append(parameterSets.picture)
        if parameterSets.sequence[1] >= 100 {
          box.append([0xFC | 1, 0xF8, 0xF8, 0])  // High profile: 4:2:0, 8 bits, 8 bits, no extensions
        }
      }
      entry.box("colr") { box in
        box.ascii("nclx")
        box.u16(1)  // primaries: BT.709
        box.u16(13)  // transfer: sRGB
        box.u16(6)  // matrix: BT.601
        box.u8(0x80)  // full range
      }
      entry.box("pasp") { box in
        box.u32(1)
        box.u32(1)
      }
    }
  }
}

extension MP4Box {
  fileprivate mutating func identityMatrix() {
    for value: UInt32 in [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000] { u32(value) }
  }

  fileprivate mutating func trackHeader(id: UInt32, flags: UInt32, duration: UInt32, width: Int, height: Int) {
    fullBox("tkhd", flags: flags) { box in
      box.zeros(8)
      box.u32(id)
      box.u32(0)
      box.u32(duration)
      box.zeros(16)  // layer, group, volume
      box.identityMatrix()
      box.u32(UInt32(width) << 16)
      box.u32(UInt32(height) << 16)
    }
  }

  /// `tx3g` (3GPP TS 26.245, 5.16): timed text with the plainest of styles.
  fileprivate mutating func textDescription() {
    box("tx3g") { entry in
      entry.zeros(6)
      entry.u16(1)  // data reference
      entry.u32(0)  // display flags
      entry.append([1, 0xFF])  // centred, at the bottom
      entry.u32(0)  // background
      entry.zeros(8)  // text box
      entry.u32(0)  // the style's characters
      entry.u16(1)  // font
      entry.append([0, 16])  // face and size that readers take for no style at all
      entry.u32(0xFFFF_FFFF)
      entry.box("ftab") { box in
        box.u16(1)
        box.u16(1)
        box.u8(5)
        box.ascii("Arial")
      }
    }
  }

  /// Durations, key frames and places of samples that lie one behind the other.
  fileprivate mutating func sampleTables(_ samples: [Sample], offset: UInt32, firstIsOnlyKey: Bool) {
    var runs: [(count: UInt32, duration: UInt32)] = []
    for sample in samples {
      let duration = UInt32(sample.duration)
      if let last = runs.last, last.duration == duration {
        runs[runs.count - 1].count += 1
      } else {
        runs.append((1, duration))
      }
    }
    fullBox("stts") { box in
      box.u32(UInt32(runs.count))
      for run in runs {
        box.u32(run.count)
        box.u32(run.duration)
      }
    }
    if firstIsOnlyKey {
      fullBox("stss") { box in
        box.u32(1)
        box.u32(1)
      }
    }
    fullBox("stsc") { box in
      for value in [1, 1, UInt32(samples.count), 1] { box.u32(value) }
    }
    fullBox("stsz") { box in
      box.u32(0)
      box.u32(UInt32(samples.count))
      for sample in samples { box.u32(UInt32(sample.data.count)) }
    }
    fullBox("stco") { box in
      box.u32(1)
      box.u32(offset)
    }
  }
}
