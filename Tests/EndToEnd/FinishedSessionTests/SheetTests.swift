import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import Sessions
@testable import Showing

/// `pictures --sheet`: the contact sheet of a session.
@Suite struct SheetTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// The JSON that the program prints about a sheet.
  private struct Result: Decodable {
    struct Problem: Decodable {
      let file: String
      let problem: String
    }

    let file: String
    let session: String
    let durationMs: Int64
    let captures: Int
    let pictures: Int
    let every: Int
    let gaps: Int
    let refused: Int
    let width: Int
    let height: Int
    let bytes: Int
    let damaged: [Problem]
    let warnings: [Problem]
  }

  /// A sheet, and the expected position of each element.
  private struct Drawn {
    let pixels: Pixels
    let layout: SheetLayout
    let plan: ContactSheetPlan
    let result: Result
    let errors: String

    /// Returns a part of the sheet, unscaled.
    func area(_ area: SheetArea) -> Pixels {
      let rows = (area.y..<area.y + area.height).map { y in
        pixels.bytes[3 * (y * pixels.width + area.x)..<3 * (y * pixels.width + area.x + area.width)]
      }
      return Pixels(width: area.width, height: area.height, bytes: Array(rows.joined()))
    }

    /// Returns a picture of this size from its tile.
    func picture(_ index: Int, _ width: Int, _ height: Int) -> Pixels {
      let tile = layout.tileArea(index)
      return area(
        SheetArea(
          x: tile.x + (tile.width - width) / 2, y: tile.y + tile.height - height, width: width, height: height))
    }

    /// Reads a line of `letters` letters from the pixels.
    func text(_ letters: Int, x: Int, y: Int) -> String {
      let scale = layout.scale
      let codes = (0..<letters).map { number -> UInt8 in
        let left = x + number * BitmapFont.advance * scale
        return (UInt8(ascii: " ")...UInt8(ascii: "~")).first { code in
          (0..<BitmapFont.rows).allSatisfy { row in
            (0..<BitmapFont.columns).allSatisfy { column in
              let isDark = pixels[left + column * scale, y + row * scale][1] < 160
              return isDark == BitmapFont.isSet(code, column: column, row: row)
            }
          }
        } ?? UInt8(ascii: "?")
      }
      return String(decoding: codes, as: UTF8.self)
    }

    /// Returns the text under a tile.
    func label(_ index: Int) -> [String] {
      let tile = layout.tileArea(index)
      return [10, 12, 13].enumerated().map { line, letters in
        let width = (letters * BitmapFont.advance - 1) * layout.scale
        return text(
          letters, x: tile.x + (tile.width - width) / 2,
          y: tile.y + tile.height + SheetLayout.labelGap + line * layout.lineHeight)
      }
    }

    func header(_ line: Int, _ letters: Int) -> String {
      text(letters, x: SheetLayout.margin, y: SheetLayout.margin + line * layout.lineHeight)
    }
  }

  private func draw(
    _ session: PublishedSession, _ options: String..., to name: String = "sheet.png", every: Int? = nil,
    status: Int32 = 0
  ) throws -> Drawn {
    let target = scratch.path(name)
    let found = try SheetSession(at: session.path)
    let plan = ContactSheetPlan(found.pieces, every: every)
    let layout = SheetLayout(
      tiles: plan.tiles.count, pictures: plan.pictureSizes, width: 200, columns: nil, header: plan.header(of: found))
    let every = every.map { ["--every", "\($0)"] } ?? []
    let run = try Tool.run(
      EncoderWorker.path, ["pictures", "--sheet", session.path, "--to", target, "--json"] + every + options)
    try #require(run.status == status, "\(run.status): \(run.errors)")
    let result = try JSONDecoder().decode(Result.self, from: run.output)
    #expect(result.bytes == (try Data(contentsOf: URL(fileURLWithPath: target)).count))
    let pixels = try ImageProbe(target).pixels()
    #expect((pixels.width, pixels.height) == (result.width, result.height))
    return Drawn(pixels: pixels, layout: layout, plan: plan, result: result, errors: run.errors)
  }

  @Test func sheetShowsEachCaptureWithItsInstant() throws {
    let session = try EncoderWorker.encode(Fixture("jittered"), into: scratch)
    let sheet = try draw(session)
    #expect((sheet.pixels.width, sheet.pixels.height) == (sheet.layout.width, sheet.layout.height))
    #expect(sheet.result.pictures == session.captured.count)
    #expect(sheet.result.every == 1)
    let formatter = ISO8601DateFormatter()
    for (index, frame) in session.captured.enumerated() {
      #expect(sheet.picture(index, 180, 320).number == index)
      let instant = formatter.string(from: Date(timeIntervalSince1970: Double(frame.timeMs / 1_000)))
      let milliseconds = String(format: ".%03d", frame.timeMs % 1_000)
      let offsetMs = Int(frame.timeMs - session.index.startMs)
      #expect(
        sheet.label(index) == [
          String(instant.prefix(10)), String(instant.dropFirst(11).prefix(8)) + milliseconds,
          String(format: "+00:00:%02d.%03d", offsetMs / 1_000, offsetMs % 1_000),
        ])
    }
    #expect(sheet.header(0, 16) == "session jittered")
    let text = "\(session.captured.count) captures; no gaps"
    #expect(sheet.header(2, text.count) == text)
  }

  @Test func everyNthCaptureIsShownAndUnneededSegmentsAreNotRead() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    try #require(session.manifests.count == 3)
    // The sheet needs none of the second segment's captures.
    try Data().write(to: URL(fileURLWithPath: session.video(session.manifests[1])))
    let sheet = try draw(session, every: 10)
    #expect(sheet.result.pictures == (session.captured.count + 9) / 10)
    for index in 0..<sheet.result.pictures { #expect(sheet.picture(index, 180, 320).number == 10 * index) }
    #expect(sheet.result.damaged.isEmpty)
  }

  @Test func gapIsHatchedAtItsPosition() throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    let sheet = try draw(session)
    #expect(sheet.result.gaps == session.index.gaps.count)
    #expect(sheet.result.durationMs == session.index.endMs - session.index.startMs)
    let gaps = sheet.plan.tiles.indices.filter { if case .gap = sheet.plan.tiles[$0] { true } else { false } }
    #expect(gaps.count == session.index.gaps.count)
    for (index, gap) in zip(gaps, session.index.gaps) {
      #expect(sheet.label(index)[1] == SheetText.instant(gap.startMs).split(separator: " ").last.map(String.init))
      let tile = sheet.layout.tileArea(index)
      let row = (tile.x..<tile.x + tile.width).map { sheet.pixels[$0, tile.y + 3] }
      #expect(Set(row).count == 2)
      let text = "gap of \((gap.endMs - gap.startMs) / 1_000) s"
      let left = tile.x + (tile.width - BitmapFont.width(of: text) * sheet.layout.scale) / 2
      let top = tile.y + (tile.height - sheet.layout.lineHeight) / 2 + sheet.layout.scale
      #expect(sheet.text(text.count, x: left, y: top) == text)
    }
    let text = "5 captures; 2 gaps, 10 s in all"
    #expect(sheet.header(2, text.count) == text)
  }

  @Test func rotatedScreenKeepsItsProportions() throws {
    let sheet = try draw(try EncoderWorker.encode(Fixture("rotation"), into: scratch))
    for index in 0..<8 {
      let isWide = (3..<6).contains(index)
      #expect(sheet.picture(index, isWide ? 200 : 180, isWide ? 113 : 320).number == index)
    }
  }

  @Test func refusedFramesAreCounted() throws {
    let sheet = try draw(try EncoderWorker.encode(Fixture("corrupt-frames"), into: scratch))
    // A third one, the last, is left for the next run.
    #expect(sheet.result.refused == 2)
    #expect(sheet.result.damaged.isEmpty)
  }

  @Test func damageIsShownAndReported() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let second = session.manifests[1]
    var bytes = try Data(contentsOf: URL(fileURLWithPath: session.video(second)))
    bytes[bytes.count - 10] ^= 1
    try bytes.write(to: URL(fileURLWithPath: session.video(second)))
    let third = session.path + "/" + session.manifests[2].file
    try FileManager.default.removeItem(atPath: third)
    let sheet = try draw(session, status: 65)
    #expect(sheet.result.damaged.map(\.file) == [second.file, session.manifests[2].file])
    #expect(sheet.errors.contains("\(second.file): not the file its manifest describes"))
    #expect(sheet.errors.contains("\(session.manifests[2].file): missing"))
    for index in 0..<5 { #expect(sheet.picture(index, 180, 320).number == index) }
    // The tile is red and shows its instant.
    for index in 5..<12 {
      let tile = sheet.layout.tileArea(index)
      let row = (tile.x..<tile.x + tile.width).map { sheet.pixels[$0, tile.y + 3] }
      #expect(row.contains { Int($0[0]) > Int($0[2]) + 20 })
      #expect(sheet.label(index)[2] == String(format: "+00:00:%02d.000", index))
    }
  }

  @Test func segmentWithoutAManifestIsReportedAsLost() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let manifest = session.path + "/segment-1767859517340.json"
    let text = try String(contentsOfFile: manifest, encoding: .utf8)
    try text.replacingOccurrences(of: "0005.jpg", with: "zzzz.jpg").write(
      toFile: manifest, atomically: false, encoding: .utf8)
    #expect(try draw(session, status: 65).result.damaged.map(\.file) == ["segment-1767859517340.json"])
    try FileManager.default.removeItem(atPath: manifest)
    let sheet = try draw(session, status: 65)
    #expect(sheet.result.damaged.map(\.file) == ["segment-1767859517340.mp4"])
    #expect(sheet.errors.contains("listed in session.json, but it has no manifest"))
    #expect(sheet.result.warnings.map(\.problem).first?.contains("part 2 of 3 is missing") == true)
    #expect(sheet.picture(6, 180, 320).number == 10)
    #expect(sheet.plan.tiles.count == 8)
  }

  @Test func aJPEGShowsTheSame() throws {
    let session = try EncoderWorker.encode(Fixture("odd-size"), into: scratch)
    let png = try draw(session)
    let jpeg = try draw(session, to: "sheet.jpg")
    #expect(try ImageProbe(jpeg.result.file).codec == "mjpeg")
    #expect(jpeg.pixels.difference(to: png.pixels) < 2)
    #expect(jpeg.result.bytes < png.result.bytes)
    // The same session gives the same bytes.
    let again = try draw(session, to: "again.png")
    #expect(
      try Data(contentsOf: URL(fileURLWithPath: again.result.file))
        == Data(contentsOf: URL(fileURLWithPath: png.result.file)))
  }

  /// As with `stitch`, the target must be a regular file, new or old, outside published sessions.
  @Test func targetThatIsNotARegularFileOrIsInASessionIsRefused() throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    try Tool.output("mkfifo", [scratch.path("fifo.png")])
    _ = try scratch.directory("directory.png")
    let before = try snapshot(of: session.path)
    for target in [
      session.path + "/sheet.png", session.path + "/thumbnails.jpg", scratch.path("fifo.png"),
      scratch.path("directory.png"), scratch.path("missing/sheet.png"), scratch.path("sheet.gif"),
      scratch.path("sheet"), "",
    ] {
      let result = try EncoderWorker.run("pictures", "--sheet", session.path, "--to", target)
      #expect(result.status == 64, "\(target): \(result.status) \(result.errors)")
    }
    let target = scratch.path("sheet.png")
    for options in [
      ["--every", "0"], ["--columns", "0"], ["--width", "71"], ["--width", "4097"],
      ["--width", "4096", "--columns", "5"], ["--max-side", "100"], ["--image-format", "png"], ["--to-time", "+1s"],
    ] {
      let result = try Tool.run(EncoderWorker.path, ["pictures", "--sheet", session.path, "--to", target] + options)
      #expect(result.status == 64, "\(options): \(result.status) \(result.errors)")
    }
    #expect(try EncoderWorker.run("pictures", "--sheet", scratch.path("nothing"), "--to", target).status == 65)
    #expect(try snapshot(of: session.path) == before)
    #expect(try names(in: scratch.path) == ["directory.png", "fifo.png", "output"])
    // It replaces an existing file and the leftovers of a killed run.
    try scratch.file("sheet.png", [1])
    try scratch.file("sheet.png.part", [2])
    #expect(try EncoderWorker.run("pictures", "--sheet", session.path, "--to", target).status == 0)
    #expect(try ImageProbe(target).codec == "png")
    #expect(try names(in: scratch.path) == ["directory.png", "fifo.png", "output", "sheet.png"])
  }
}
