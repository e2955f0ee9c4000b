// Formats of videos, told apart by their first bytes, and the command that leads from each to a film.

import FileSystem

/// A format of videos. None of them is a batch of pictures.
package enum VideoFormat: String, Sendable, CaseIterable {
  case mp4 = "an MP4 video"
  case quickTime = "a QuickTime (MOV) video"
  case webM = "a WebM video"
  case matroska = "a Matroska (MKV) video"
  case avi = "an AVI video"
  case flash = "a Flash (FLV) video"
  case transportStream = "a video in an MPEG transport stream"
  case programStream = "an MPEG video"
  case windowsMedia = "a Windows Media (WMV) video"
  case ogg = "an Ogg video or sound"
  case rawH264 = "a raw H.264 or HEVC video"
  case ivf = "an IVF video"
  case yuv4MPEG = "a YUV4MPEG video"

  init?(of file: some Collection<UInt8>) {
    let start = Array(file.prefix(1_024))
    func has(_ bytes: [UInt8], at offset: Int = 0) -> Bool { start.dropFirst(offset).starts(with: bytes) }
    func has(_ text: String, at offset: Int = 0) -> Bool { has(Array(text.utf8), at: offset) }
    if has("ftyp", at: 4) {
      self = has("qt  ", at: 8) ? .quickTime : .mp4
    } else if ["moov", "mdat", "wide", "pnot"].contains(where: { has($0, at: 4) }) {
      // Older QuickTime files have no brand.
      self = .quickTime
    } else if has([0x1A, 0x45, 0xDF, 0xA3]) {
      // The document type is in the header, which has some 40 bytes (RFC 8794, 11.2).
      self = String(decoding: start.prefix(64), as: UTF8.self).contains("webm") ? .webM : .matroska
    } else if has("RIFF"), has("AVI ", at: 8) {
      self = .avi
    } else if has("FLV\u{1}") {
      self = .flash
    } else if [0, 4].contains(where: { first in
      // Packets of 188 bytes (ISO/IEC 13818-1, 2.4.3.2); those of camcorders have a time of four bytes before each.
      start.count > first + 2 * (188 + first) && (0...2).allSatisfy { start[first + $0 * (188 + first)] == 0x47 }
    }) {
      self = .transportStream
    } else if has([0, 0, 1, 0xBA]) || has([0, 0, 1, 0xB3]) {
      self = .programStream
    } else if has([0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11]) {
      self = .windowsMedia
    } else if has("OggS") {
      self = .ogg
    } else if has([0, 0, 0, 1]), start.count > 4, [0x09, 0x27, 0x40, 0x46, 0x47, 0x67].contains(start[4]) {
      // A delimiter or parameter set of H.264 (ISO/IEC 14496-10, 7.3.1) or HEVC.
      self = .rawH264
    } else if has("DKIF") {
      self = .ivf
    } else if has("YUV4MPEG2 ") {
      self = .yuv4MPEG
    } else {
      return nil
    }
  }

  package var described: String { rawValue }

  /// Whether no other file begins like it.
  var hasSignature: Bool { ![.transportStream, .programStream, .rawH264].contains(self) }

  /// Whether `film` and `reencode` read it.
  package var isReadable: Bool { self == .mp4 || self == .quickTime }

  /// The remedy for a video.
  ///
  /// - Parameter path: of the file, for the user's shell.
  package func advice(for path: String) -> String {
    guard isReadable else { return Self.conversion(of: path) }
    let file = Self.word(path)
    return "to make a film of it, run: encoder-worker film \(file) --to FILE.mp4; to make a session, run: "
      + "encoder-worker reencode \(file) --output DIR --quality balanced --start MS, with the unix milliseconds of its first picture"
  }

  /// The remedy for a video of a coding or a format that is not read.
  package static func conversion(of path: String) -> String {
    let stem = path.withoutSuffix
    return "make an MP4 of it, which film and reencode take: ffmpeg -i \(word(path)) \(encoding) "
      + word(stem + (path == stem + ".mp4" ? "-h264.mp4" : ".mp4"))
  }

  /// Returns the format of a file; nil if it is no video, or cannot be read.
  package static func ofFile(at path: String) -> VideoFormat? {
    (try? BatchFile(opening: path, name: path, followingLinks: true)).flatMap { file in
      guard let start = try? file.bytes(0..<min(file.size, 1_024)), case .video(let video)? = FileKind(of: start) else {
        return nil
      }
      return video
    }
  }

  /// Bytes of an image in which the table of its sequence is looked for.
  private static let sequenceBytes = 64 << 20

  /// Whether a file is an image sequence of AVIF or HEIF: a video in all but its name.
  package static func isSequence(at path: String) -> Bool {
    (try? BatchFile(opening: path, name: path, followingLinks: true)).map { file in
      guard let start = try? file.bytes(0..<min(file.size, 1_024)), case .image(let kind)? = FileKind(of: start),
        [.avif, .heic].contains(kind), let bytes = try? file.bytes(0..<min(file.size, sequenceBytes))
      else { return false }
      return ImageSequence.count(in: bytes, kind) > 1
    } ?? false
  }

  /// Returns the remedy for a folder of videos that is no batch; nil if it has no video.
  package static func adviceOnFolder(_ path: String) -> String? {
    (try? DirectoryContents(opening: path, limits: Limits())).flatMap { UnknownBatch.videos($0)?.advice }
  }

  /// The remedy for several videos.
  package func advice(joining paths: [String]) -> String { advice(joiningWords: paths.map(\.shellWord)) }

  /// - Parameter words: paths, or patterns of paths, for the user's shell.
  func advice(joiningWords words: [String]) -> String {
    let rooted = words.map { $0.hasPrefix("/") || $0.hasPrefix("'/") ? $0 : #""$PWD"/"# + $0 }
    return "join them to one MP4, which film and reencode take: ffmpeg -f concat -safe 0 -i "
      + #"<(printf "file '%s'\n" \#(rooted.joined(separator: " "))) "#
      + (isReadable ? "-c copy" : Self.encoding) + " joined.mp4"
  }

  /// H.264 that all players show; its sides have to be even.
  private static let encoding = "-vf 'pad=ceil(iw/2)*2:ceil(ih/2)*2' -c:v libx264 -pix_fmt yuv420p"

  private static func word(_ path: String) -> String { (path.hasPrefix("-") ? "./" + path : path).shellWord }
}

extension String {
  /// The path without the suffix of its last component.
  fileprivate var withoutSuffix: String {
    let name = lastComponent(of: self)
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return self }
    return String(dropLast(name[dot...].count))
  }
}
