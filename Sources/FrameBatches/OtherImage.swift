// Image formats that are no frames, told apart by their first bytes, and a command of Debian that converts each; and formats that
// not every libavcodec can decode.

import Glibc

/// A format of images that has to be converted first.
package enum OtherImage: String, Sendable, CaseIterable {
  // Never found by their first bytes: an ``ImageKind`` whose decoder libavcodec may lack.
  case avif = "AVIF"
  case heic = "HEIC"
  case jpegXL = "JPEG XL"
  case jpeg2000 = "JPEG 2000"
  case pbm = "PBM"
  case pgm = "PGM"
  case ppm = "PPM"
  case pam = "PAM"
  case pfm = "PFM"
  case psd = "PSD"
  case ico = "ICO"
  case pdf = "PDF"
  case svg = "SVG"
  /// Canon CR3, Fujifilm RAF, Olympus ORF, Panasonic RW2 by their first bytes; TIFFs that are ``CameraRaw`` without a preview.
  case cameraRaw = "camera raw"

  init?(of file: some Collection<UInt8>) {
    func has(_ bytes: [UInt8], at offset: Int = 0) -> Bool { file.dropFirst(offset).starts(with: bytes) }
    func has(_ text: String, at offset: Int = 0) -> Bool { has(Array(text.utf8), at: offset) }
    if has([0, 0, 0, 12]) && has("jP  \r\n", at: 4) || has([0xFF, 0x4F, 0xFF, 0x51]) {
      self = .jpeg2000
    } else if has("ftypcrx ", at: 4) || has("FUJIFILMCCD-RAW")
      || ["IIRO", "IIRS", "MMOR", "IIU\0"].contains(where: { has($0) })
    {
      self = .cameraRaw
    } else if has("8BPS") {
      self = .psd
    } else if has([0, 0, 1, 0]) {
      self = .ico
    } else if has("%PDF-") {
      self = .pdf
    } else if has("<svg") || has("<?xml"), String(decoding: file.prefix(1_024), as: UTF8.self).contains("<svg") {
      self = .svg
    } else if has("P"), let map = Self(portableMap: Array(file.prefix(3))) {
      self = map
    } else {
      return nil
    }
  }

  /// The maps of Netpbm: a letter, a digit, and white space.
  private init?(portableMap start: [UInt8]) {
    guard start.count == 3, [0x20, 0x09, 0x0A, 0x0D, UInt8(ascii: "#")].contains(start[2]) else { return nil }
    switch start[1] {
    case UInt8(ascii: "1"), UInt8(ascii: "4"): self = .pbm
    case UInt8(ascii: "2"), UInt8(ascii: "5"): self = .pgm
    case UInt8(ascii: "3"), UInt8(ascii: "6"): self = .ppm
    case UInt8(ascii: "7"): self = .pam
    case UInt8(ascii: "F"), UInt8(ascii: "f"): self = .pfm
    default: return nil
    }
  }

  package var described: String {
    let article = [.avif, .ico, .svg].contains(self) ? "an" : "a"
    return "\(article) \(rawValue) \(self == .pdf ? "document" : "image")"
  }

  /// The reason to refuse a frame.
  package var refusal: Refusal { Refusal("\(described) is not supported", .convert(self)) }

  /// The remedy for a file.
  var conversion: String { "convert it: \(command("FILE.\(suffix)", to: "FILE"))" }

  /// The remedy for a directory of files.
  ///
  /// - Parameter name: the name of one of the files.
  package func advice(for name: String?) -> String {
    let own = name?.split(separator: ".", omittingEmptySubsequences: false).dropFirst().last ?? ""
    let isPlain = !own.isEmpty && own.utf8.allSatisfy { isalnum(Int32($0)) != 0 }
    let loop = command(#""./$f""#, to: #""png/${f%.*}""#)
    return "convert the frames to JPEG, PNG or WebP: mkdir -p png; "
      + "for f in *.\(isPlain ? String(own) : suffix); do \(loop); done" + (package.map { " (package \($0))" } ?? "")
  }

  private var suffix: String {
    switch self {
    case .jpeg2000: "jp2"
    case .jpegXL: "jxl"
    case .cameraRaw: "raw"
    default: rawValue.lowercased()
    }
  }

  /// Returns the command that converts a file to a PNG; ffmpeg reads all formats but four.
  private func command(_ input: String, to stem: String) -> String {
    switch self {
    case .avif, .heic: "heif-convert \(input) \(stem).png"
    case .cameraRaw: "darktable-cli \(input) \(stem).png"
    case .svg: "rsvg-convert -o \(stem).png \(input)"
    case .pdf: "pdftoppm -png -singlefile \(input) \(stem)"
    default: "ffmpeg -i \(input) -frames:v 1 \(stem).png"
    }
  }

  /// The Debian package of a command other than ffmpeg.
  private var package: String? {
    switch self {
    case .avif, .heic: "libheif-examples"
    case .svg: "librsvg2-bin"
    case .pdf: "poppler-utils"
    case .cameraRaw: "darktable"
    default: nil
    }
  }
}
