import Foundation
import TestSupport
import Testing

/// Each command of docs/make-a-film.md makes one film of its folder, and nothing else.
@Suite struct FilmPageTests {
  /// The folder of a row.
  struct Folder: Sendable {
    /// A fixture that is copied to `path`; nil if the test makes the pictures.
    var fixture: String?
    var path = ""
    var pictures: [String] = []
    /// The distance of modification times, in seconds; photos have their times a minute apart.
    var distanceS: Int64?
    /// The film's duration in milliseconds.
    let durationMs: Int64

    init(_ fixture: String, as path: String, lasts durationMs: Int64) {
      (self.fixture, self.path, self.durationMs) = (fixture, path, durationMs)
    }

    init(_ pictures: [String], lasts durationMs: Int64, distanceS: Int64? = nil) {
      (self.pictures, self.durationMs, self.distanceS) = (pictures, durationMs, distanceS)
    }
  }

  private static let start = 1_767_859_512_000

  /// The folders by the first words of the row, in the order of the table.
  static let folders: KeyValuePairs<String, Folder> = [
    "screenshots of macOS": Folder(
      (12...17).map { "Desktop/Screenshot 2026-01-08 at 9.05.\($0)\u{202F}AM.png" }, lasts: 6_000),
    "a bug": Folder((0..<5).map { "shots/\(start + 1_000 * $0).png" }, lasts: 5_000),
    "rendered": Folder((1...48).map { String(format: "frames/frame_%04d.png", $0) }, lasts: 2_000),
    "a job in several": Folder(
      (0..<48).map { String(format: "job/part%d/frame_%04d.png", 9 + $0 / 24, $0 % 24) }, lasts: 2_000),
    "a camera's card": Folder(
      (0..<6).map { String(format: "100CANON/IMG_%04d.JPG", 412 + $0) }, lasts: 6_000, distanceS: 60),
    "a surveillance": Folder((10...14).map { "Camera1/2026-01-08/09-05-\($0).jpg" }, lasts: 5_000),
    "your own": Folder((10...14).map { "lobby/20260108/T0905\($0).jpg" }, lasts: 5_000),
    "a Playwright": Folder("formats/playwright/trace-10.zip", as: "trace.zip", lasts: -1),
    "a phone's": Folder(
      "formats/openreplay-tar/7281923112-1767859516340.tar.gz", as: "7281923112-0.tar.gz", lasts: -1),
    "a day of a kiosk": Folder((0..<120).map { "kiosk/\(start + 60_000 * $0).jpg" }, lasts: 5_000),
    "a printer's": Folder((1...60).map { String(format: "print/layer-%06d.jpg", $0) }, lasts: 2_000),
    "a microscope": Folder(["b", "a", "d", "c"].map { "scope/\($0).png" }, lasts: 400, distanceS: 60),
    "a night": Folder((0..<6).map { "20260108/image-2026010823351\($0).jpg" }, lasts: 60),
  ]

  /// Returns the first and the last cell of each row.
  private func rows() throws -> [(folder: String, command: String)] {
    let page = try String(contentsOf: Fixture.root.appendingPathComponent("docs/make-a-film.md"), encoding: .utf8)
    let lines = page.split(separator: "\n").drop { !$0.hasPrefix("| folder |") }.prefix { $0.hasPrefix("|") }
    return lines.dropFirst(2).map { line in
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      return (cells[0], cells[cells.count - 1].replacing("`", with: ""))
    }
  }

  @Test(arguments: 0..<13) func commandMakesTheFilmOfItsFolder(number: Int) throws {
    let rows = try rows()
    try #require(rows.count == Self.folders.count)
    let (row, (name, folder)) = (rows[number], Self.folders[number])
    #expect(row.folder.hasPrefix(name))
    let scratch = try ScratchDirectory()
    try make(folder, in: scratch)
    let before = try names(in: scratch.path)
    let program = URL(fileURLWithPath: EncoderWorker.path).deletingLastPathComponent().path
    let result = try Tool.run("sh", ["-c", "PATH=\"\(program):$PATH\"; \(row.command) --json"], in: scratch.url)
    #expect(result.status == 0, "\(row.command): \(result.text)\(result.errors)")
    let film = try #require(row.command.split(separator: " ").last.map(String.init))
    #expect(try Set(names(in: scratch.path)) == Set(before + [film]))
    let said = try #require(
      result.text.firstMatch(of: /"durationMs":(\d+)/).flatMap { Int64($0.output.1) }, "\(result.text)")
    #expect(folder.durationMs < 0 ? said > 0 : said == folder.durationMs, "\(row.command): \(said) ms")
    // A reader that is not ours agrees.
    let duration = try Tool.output(
      "ffprobe", ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", scratch.path(film)])
    let seconds = String(decoding: duration, as: UTF8.self)
    let probed = try #require(Double(seconds.trimmingCharacters(in: .whitespacesAndNewlines)))
    #expect(abs(probed * 1_000 - Double(said)) < 10, "\(row.command): \(seconds)")
  }

  /// Returns a picture that says when it was taken.
  private static func photo(_ file: [UInt8], minute: Int) -> [UInt8] {
    let dateTimeOriginal = (tag: 0x9003, text: String(format: "2026:01:08 09:%02d:12", minute))
    return OrientedImage.file(
      file, kind: "jpg", exif: OrientedImage.captureTIFF([dateTimeOriginal]), storedSize: (180, 320))
  }

  private func make(_ folder: Folder, in scratch: ScratchDirectory) throws {
    if let fixture = folder.fixture {
      try FileManager.default.copyItem(atPath: Fixture(fixture).path, toPath: scratch.path(folder.path))
    }
    for (number, picture) in folder.pictures.enumerated() {
      let path = scratch.path(picture)
      try FileManager.default.createDirectory(
        atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
      let file = try Fixture("exact-1fps").bytes(String(format: "%04d.jpg", number % 10))
      if let distanceS = folder.distanceS {
        let time = Date(timeIntervalSince1970: Double(Self.start / 1_000 + Int(distanceS) * number))
        let isCamera = picture.hasSuffix(".JPG")
        try scratch.file(picture, isCamera ? Self.photo(file, minute: number) : file)
        try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path)
      } else {
        try scratch.file(picture, file)
      }
    }
  }
}
