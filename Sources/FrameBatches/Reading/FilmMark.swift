// The mark of the animated pictures, posters and contact sheets that this program writes. They often lie beside the pictures that they
// show, and are no pictures of the next film.

import CZlib
import FileSystem

package enum FilmMark {
  /// A comment of GIF and JPEG, a text of PNG, and a chunk of WebP.
  private static let text = Array("encoder-worker film".utf8)
  /// The name of the chunk of a WebP. Readers skip what they do not know (RFC 9649, 2.7).
  private static let webPChunk = Array("ENCW".utf8)
  /// The bytes at a file's beginning, or at the end of a WebP, in which the mark is.
  private static let headBytes = 1_024
  package static let webPTail =
    webPChunk + [UInt8(text.count), 0, 0, 0] + text + [UInt8](repeating: 0, count: text.count % 2)
  /// The comment extension of a GIF.
  package static let gifComment = [0x21, 0xFE, UInt8(text.count)] + text + [0]

  /// Returns a PNG or JPEG of our own encoder with the mark.
  package static func marking(_ file: [UInt8]) -> [UInt8] {
    if file.starts(with: [0xFF, 0xD8]), file.count > 6 {
      // A JFIF header has to be first.
      let place = file[3] == 0xE0 ? min(file.count, 4 + Int(file[4]) << 8 + Int(file[5])) : 2
      return file[..<place] + [0xFF, 0xFE, 0, UInt8(text.count + 2)] + text + file[place...]
    }
    // Behind the header chunk of a PNG.
    guard file.starts(with: [0x89, 0x50, 0x4E, 0x47]), file.count > 33 else { return file }
    let chunk = Array("tEXtSoftware".utf8) + [0] + text
    let checksum = unsafe chunk.withUnsafeBytes { unsafe crc32_z(0, $0.baseAddress, $0.count) }
    return file[..<33] + bigEndian(chunk.count - 4) + chunk + bigEndian(Int(checksum)) + file[33...]
  }

  /// Whether a file has the mark.
  static func isOn(_ file: [UInt8]) -> Bool {
    guard let kind = ImageKind(of: file) else { return false }
    let part = kind == .webp ? file.suffix(webPTail.count) : file.prefix(headBytes)
    return kind == .webp ? part.elementsEqual(webPTail) : part.firstRange(of: text) != nil
  }

  /// Whether a PNG or JPEG at a path has the mark.
  package static func isOn(fileAt path: String) -> Bool {
    guard let folder = try? Directory(opening: DurableFile.parentDirectory(of: path)),
      case .bytes(let start)? = try? folder.start(of: lastComponent(of: path), count: headBytes)
    else { return false }
    return isOn(start)
  }

  private static func bigEndian(_ value: Int) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
  }
}

/// A container without the files that are no pictures of a film.
struct ContentsWithout: BatchContents {
  let names: [String]
  let topNames: [String]
  let recordings: [String]
  let isLoose: Bool
  private let all: any BatchContents

  init(_ hidden: Set<String>, in all: any BatchContents) {
    names = all.names.filter { !hidden.contains($0) }
    topNames = all.topNames.filter { !hidden.contains($0) }
    recordings = all.recordings.filter { !hidden.contains($0) }
    (isLoose, self.all) = (all.isLoose, all)
  }

  var refused: [RefusedFrame] { all.refused }
  var refusedRecordings: [RefusedFrame] { all.refusedRecordings }
  var stream: [UInt8]? { all.stream }
  var text: StreamContents? { all.text }

  func modifiedMs(_ name: String) throws -> Int64? { try all.modifiedMs(name) }
  func contents(of name: String, limit: Int) throws -> FileContents? { try all.contents(of: name, limit: limit) }
  func start(of name: String, count: Int) throws -> [UInt8]? { try all.start(of: name, count: count) }
  func sideFile(_ name: String, limit: Int) throws -> FileContents? { try all.sideFile(name, limit: limit) }
}

extension BatchSource {
  /// Files of which so many have names that differ in one number only are recorded pictures.
  private static let mostOfAForm = 100
  /// Maximum number of files that are read to find the mark.
  private static let mostRead = 4_096

  /// Leaves out the file that the call writes, and the films, posters and sheets of calls before. Only where any name is that of a
  /// picture, they would be taken for pictures.
  ///
  /// - Parameter folder: the path of the files' folder; nil if they are in an archive.
  mutating func leaveOutFilms(in folder: String?, limits: Limits) throws {
    var hidden: Set<String> = []
    if let target = options.target, let folder, contents.isLoose {
      let path = folder.asFolder
      if target.hasPrefix(path), case let name = String(target.dropFirst(path.count)),
        (contents.names + contents.recordings).contains(name)
      {
        hidden.insert(name)
      }
    }
    let films = try options.takesAnyName ? films(without: hidden, limits: limits) : []
    hidden.formUnion(films)
    guard !hidden.isEmpty else { return }
    contents = ContentsWithout(hidden, in: contents)
    guard let first = films.first else { return }
    let others = films.count > 1 ? " and \(films.count - 1) more" : ""
    notes.append("\(first.shortened(to: 255))\(others) left out: encoder-worker has made it of other pictures")
  }

  private func films(without hidden: Set<String>, limits: Limits) throws -> [String] {
    let kinds = [".gif", ".webp", ".png", ".jpg", ".jpeg"]
    let likely = contents.names.filter { name in
      !hidden.contains(name) && kinds.contains { name.lowercased().hasSuffix($0) }
    }
    let forms = Dictionary(grouping: likely) { NaturalOrder.form(of: $0) }
    let rare = forms.values.filter { $0.count <= Self.mostOfAForm }.joined().sorted()
    return try rare.prefix(Self.mostRead).filter { name in
      guard let start = try contents.start(of: name, count: 1_024) else { return false }
      guard ImageKind(of: start) == .webp else { return FilmMark.isOn(start) }
      guard case .bytes(let file)? = try contents.contents(of: name, limit: limits.fileBytes) else { return false }
      return FilmMark.isOn(file)
    }
  }
}
