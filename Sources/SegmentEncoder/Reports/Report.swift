// An archive for others to find a fault with: facts of one session, or of one batch, without what identifies its user.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON
import Sessions

/// A report that is being put together.
package struct Report {
  /// The format of `report.json`.
  static let format = "fault-report/1"

  /// The facts of a report on the program and its settings.
  package struct Origin {
    /// The version of the program.
    package let version: String
    /// The settings of `run` that are given here, without secrets, paths and addresses.
    package let settings: [JSONValue]

    package init(version: String, settings: [JSONValue]) { (self.version, self.settings) = (version, settings) }
  }

  /// A report that was written.
  package struct Written {
    package let path: String
    package let bytes: Int
    package let files: [(name: String, bytes: Int)]
    package let hasPixels: Bool

    /// One line of JSON.
    package var json: String {
      JSONValue.object([
        "report": .string(path), "bytes": .number(bytes), "pixels": .bool(hasPixels),
        "files": .array(files.map { .object(["name": .string($0.name), "bytes": .number($0.bytes)]) }),
      ]).line
    }

    /// For people.
    package var text: String {
      let content =
        hasPixels
        ? "with the pictures as they are, and all that is in them"
        : "times, sizes, digests, reasons and settings; no picture, and no name"
      return
        "report: \(path) (\(count(files.count, "file")), \(bytes) bytes): \(content); read its report.json before you hand it on"
    }
  }

  var redaction: Redaction
  var members: [String: JSONValue] = [:]
  private(set) var archive: ReportArchive
  let hasPixels: Bool

  /// - Parameters:
  ///   - kind: `session` or `batch`.
  ///   - isOwn: whether a name is the program's own.
  init(
    of kind: String, in directory: String, hasPixels: Bool, _ origin: Origin,
    isOwn: @escaping (String) -> Bool = { _ in false }
  ) throws {
    redaction = Redaction(names: Pseudonyms(isOwn: isOwn))
    archive = try ReportArchive(in: directory)
    self.hasPixels = hasPixels
    members["format"] = .string(Self.format)
    members["of"] = .string(kind)
    members["madeMs"] = .number(WallClock.nowMs)
    members["versions"] = Self.versions(origin.version)
    members["settings"] = .array(origin.settings)
  }

  /// Adds a file as it is.
  mutating func add(_ name: String, _ bytes: [UInt8]) throws { try archive.add(name, bytes) }

  /// Returns what is kept of a value.
  mutating func kept(_ json: JSONValue, as rule: AllowedValue) -> JSONValue { redaction.kept(json, as: rule) ?? .null }

  mutating func name(_ text: String) -> JSONValue { .string(redaction.names.name(text)) }

  mutating func message(_ text: String) -> JSONValue { .string(redaction.names.sentence(text)) }

  /// Writes `report.json` and a page that explains it.
  mutating func finish() throws -> Written {
    members["dropped"] = .number(redaction.dropped)
    try archive.add("report.json", JSONValue.object(members).bytes(pretty: true) + [UInt8(ascii: "\n")])
    try archive.add("README.txt", Array(Self.explanation(hasPixels: hasPixels).utf8))
    try archive.finish()
    return Written(path: archive.path, bytes: archive.bytes, files: archive.files, hasPixels: hasPixels)
  }

  private static func explanation(hasPixels: Bool) -> String {
    """
    A report of encoder-worker on one session or one batch, to find a fault with.

    report.json has times, sizes, digests of pictures and videos, reasons, settings and versions. Names are replaced
    by their shapes: letters by a and A, digits by 0, and a number that is the same for equal names. Texts, pages,
    labels, metadata and places of touches are left out; only their number or length is there. "dropped" counts
    members that this version does not know, and leaves out, too. Read it before you hand it on.

    \(hasPixels
      ? "The other files are the videos of the session, or the files of the batch, as they are: anyone who has this report\nsees all that they show, and their names."
      : "It has no picture.")

    """
  }

  private static func versions(_ program: String) -> JSONValue {
    var system = utsname()
    uname(&system)
    let machine = text(of: system.machine)
    return .object([
      "program": .string(program), "ffmpeg": .string(numbers(FFmpegVersion.release)),
      "libavcodec": .string(FFmpegVersion.libavcodec),
      // The rest of a kernel's or a build's name is up to those who made it.
      "kernel": .string(numbers(text(of: system.release))),
      "architecture": .string(["x86_64", "aarch64"].contains(machine) ? machine : "other"),
    ])
  }

  /// Returns the numbers that a version begins with.
  private static func numbers(_ version: String) -> String {
    String(version.prefix { $0 == "." || "0"..."9" ~= $0 }.prefix(20))
  }

  private static func text<Field>(of field: Field) -> String {
    withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}
