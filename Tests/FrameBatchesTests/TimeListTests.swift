import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches

/// Capture times that a list tells: ffmpeg's concat list, tables, lines of JSON.
@Suite struct TimeListTests: FrameTimesSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private static let start: Int64 = 1_767_859_512_000
  private static let offsets: [Int64] = [0, 1_520, 3_800, 4_840]

  /// Reads a batch of pictures with a list.
  ///
  /// - Parameter place: the list's path in the scratch directory; nil for `times.txt` beside the pictures.
  private func read(
    _ text: String, _ names: [String] = (1...4).map { "img\($0).png" }, at place: String? = nil, start: String? = nil,
    timeZone: String? = nil
  ) throws -> Batch {
    let path = try batch(names)
    if let place { _ = try scratch.directory(DurableFile.parentDirectory(of: place)) }
    let list = try scratch.file(place ?? lastComponent(of: path) + "/times.txt", Array(text.utf8))
    return try read(path, list, start: start, timeZone: timeZone)
  }

  private func read(_ path: String, _ list: String, start: String? = nil, timeZone: String? = nil) throws -> Batch {
    var options = InputOptions(session: "s")
    try options.setTimes(nameTime: nil, times: list, start: start, fps: nil, timeZone: timeZone) {
      path, zone throws(InvalidOption) in try TimeList(reading: path, zone: zone)
    }
    return try BatchSessions(reading: path, options: options).readers[0].batch
  }

  private static let concat = """
    ffconcat version 1.0
    file 'img1.png'
    duration 1.52
    file 'img2.png'
    duration 00:00:02.280

    # a comment
    file img3.png
    duration 1040ms
    file 'img4.png'
    duration 3.000000
    file 'img4.png'
    """

  @Test func durationsOfAConcatListAreTheHolds() throws {
    let batch = try read(Self.concat, start: "\(Self.start)")
    #expect(batch.frames.map { $0.timeMs - Self.start } == Self.offsets && batch.endMs - Self.start == 7_840)
    #expect(batch.capture == .onChange && batch.refused == [] && batch.warnings == [])
    // Without its last line, and without the last duration.
    let short = Self.concat.split(separator: "\n").dropLast().joined(separator: "\n")
    #expect(try read(short, start: "0\(Self.start)").endMs - Self.start == 7_840)
    let open = short.split(separator: "\n").dropLast().joined(separator: "\n")
    #expect(try read(open, start: "\(Self.start)").endMs - Self.start == 5_840)
    let error = #expect(throws: InvalidOption.self) { try read(Self.concat) }
    #expect(error?.name == .start && error?.cause.hasPrefix("times.txt tells durations") == true)
  }

  /// A third of a second is no whole millisecond.
  @Test func errorsOfDurationsDoNotAddUp() throws {
    let lines = (1...4).map { "file img\($0).png\nduration 0.333333333" }
    let batch = try read(lines.joined(separator: "\n"), start: "\(Self.start)")
    #expect(batch.frames.map { $0.timeMs - Self.start } == [0, 333, 667, 1_000] && batch.endMs - Self.start == 1_333)
  }

  @Test func quotedNamesOfAConcatListAreRead() throws {
    let names = ["it's.png", "a b.png", #"c\d.png"#]
    let text = #"""
      file 'it'\''s.png'
      duration 1
      file a\ b.png
      duration 1
      file 'file:c\d.png'
      duration 1
      """#
    #expect(try read(text, names, start: "\(Self.start)").frames.map(\.source) == names)
  }

  struct Form: Sendable, CustomStringConvertible {
    let description: String
    /// A line for a name and its milliseconds.
    var head = ""
    let line: @Sendable (String, Int64) -> String
    var timeZone: String?
  }

  /// Seconds with three decimals, behind the minute.
  private static func seconds(_ ms: Int64) -> String {
    "\(ms / 1_000 + 12).\(1_000 + ms % 1_000)".replacing(".1", with: ".")
  }

  private static let forms = [
    Form(description: "CSV", head: "file,time\n") { "\($0),2026-01-08T08:05:\(seconds($1))Z" },
    Form(
      description: "quoted CSV of local times", line: { "2026-01-08 09:05:\(seconds($1)),7,\"\($0)\"" },
      timeZone: "+01:00"),
    Form(description: "semicolons and microseconds", head: "n;t\n") { "\($0);\((start + $1) * 1_000)" },
    Form(description: "TSV of milliseconds") { "\(start + $1)\t\($0)\tshown" },
    Form(description: "TUM", head: "# timestamp filename\n") {
      "\((start + $1) / 1_000).\(1_000_000 + ($1 % 1_000) * 1_000)".replacing(".1", with: ".") + " ./\($0)"
    },
    Form(description: "EuRoC", head: "#timestamp [ns],filename\r\n") { "\(start + $1)000000,\($0)\r" },
    Form(description: "powers of ten") { "1.7678595\(12_000 + $1)0e+09 \($0)" },
    Form(description: "lines of JSON") { #"{"file":"\#($0)","timeMs":\#(start + $1),"masks":[]}"# },
  ]

  @Test(arguments: forms) func tableTellsTimes(_ form: Form) throws {
    let lines = zip(1...4, Self.offsets).map { form.line("img\($0).png", $1) }
    let batch = try read(form.head + lines.joined(separator: "\n") + "\n", timeZone: form.timeZone)
    #expect(batch.frames.map { $0.timeMs - Self.start } == Self.offsets)
    #expect(batch.refused == [] && batch.warnings == [])
    if form.timeZone != nil {
      #expect(throws: InvalidOption.self) { try read(form.head + lines.joined(separator: "\n")) }
    }
  }

  /// Data sets of cameras count from the beginning of the recording.
  @Test func secondsFromTheBeginningCountFromTheStart() throws {
    let text = "0.003811 img1.png\n1.5200004 img2.png\n2 img3.png\n"
    #expect(try read(text, start: "\(Self.start)").frames.map { $0.timeMs - Self.start } == [4, 1_520, 2_000])
    #expect(throws: InvalidOption.self) { try read(text) }
  }

  @Test func picturesOfOneSecondAreSpreadInTheOrderOfTheLines() throws {
    let text = (1...4).reversed().map { "img\($0).png 1767859512" }.joined(separator: "\n")
    let batch = try read(text)
    #expect(batch.frames.map(\.source) == ["img4.png", "img3.png", "img2.png", "img1.png"])
    #expect(batch.frames.map { $0.timeMs - Self.start } == [0, 250, 500, 750])
  }

  /// Names count from the list's folder, or from the batch; lists of other machines have paths of theirs.
  @Test(
    arguments: [("", "tum/times.txt", "rgb/"), ("rgb/", "tum/rgb.txt", ""), ("", "times.csv", "/home/ann/run7/")])
  func namesOfTheListCountFromItsFolderOrFromTheBatch(_ folder: String, _ place: String, _ prefix: String) throws {
    let text = (1...3).map { "\(prefix)img\($0).png 176785951\($0).0" }.joined(separator: "\n")
    #expect(try read(text, (1...3).map { "\(folder)img\($0).png" }, at: place).frames.count == 3)
    // The batch beside its list.
    let path = DurableFile.parentDirectory(of: try scratch.directory("set/rgb"))
    for number in 1...3 { try scratch.file("set/rgb/\(number).png", [1]) }
    let list = try scratch.file("set/rgb.txt", Array("rgb/1.png 1767859512.0\nrgb/2.png 1767859513.0".utf8))
    for batch in [path, path + "/rgb"] {
      let read = try read(batch, list)
      #expect(read.frames.map(\.source) == ["1.png", "2.png"])
      #expect(read.refused.map { lastComponent(of: $0.source) } == ["3.png"])
    }
  }

  @Test func linesAndPicturesThatDoNotFitAreRefusedByName() throws {
    let text = """
      img1.png 1767859512.0
      img9.png 1767859513.0
      img2.png soon
      img1.png 1767859514.0
      img3.png 1767859515.0
      img3.png 1767859515.0
      """
    let batch = try read(text)
    #expect(batch.frames.map(\.source) == ["img1.png", "img3.png"])
    #expect(
      Dictionary(uniqueKeysWithValues: batch.refused.map { ($0.source, $0.reason) }) == [
        "times.txt:2": "no file 'img9.png' in the batch", "times.txt:3": "no time in 'img2.png soon'",
        "times.txt:4": "'img1.png' is listed again; line 1 counts", "img2.png": "not listed in times.txt",
        "img4.png": "not listed in times.txt",
      ])
    #expect(batch.warnings.contains { $0.hasPrefix("3 lines of times.txt cannot be used; the first is line 3") })
  }

  @Test(
    arguments: [
      "", "img1.png\nimg2.png", "img1.png 0\nimg2.png 1", "file img1.png\nfile img2.png\nduration 1",
      "file img1.png\nduration soon", "ffconcat version 1.0", "duration 1", "file img1.png\nduration 99999999999999",
      "\u{0}", String(repeating: "x", count: 5_000),
    ])
  func listsWithoutTimesAreRefused(_ text: String) {
    #expect(throws: InvalidOption.self) { try read(text, start: "\(Self.start)") }
    #expect(throws: InvalidOption.self) { try read(text) }
  }

  @Test func brokenListsNeverTrap() {
    var random = Random(seed: 62)
    let tables = Self.forms.map { form in
      form.head + zip(1...4, Self.offsets).map { form.line("i\($0).png", $1) }.joined(separator: "\n")
    }
    for text in tables + [Self.concat] {
      for _ in 0..<50 {
        var bytes = Array(text.utf8)
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...127, using: &random)
        }
        _ = try? TimeList(bytes, at: .batch("times.txt"), zone: .utc)
      }
    }
  }

  // MARK: - In a batch

  @Test func batchNamesAListInItselfOnly() throws {
    let names = (1...4).map { "img\($0).png" }
    func native(_ list: String) throws -> String {
      let path = try batch(names, json: #"{"version":1,"times":"\#(list)","start":\#(Self.start)}"#)
      try scratch.file(lastComponent(of: path) + "/in.txt", Array(Self.concat.utf8))
      return path
    }
    let inside = try BatchSessions(reading: native("./in.txt"), options: options()).readers[0].batch
    #expect(inside.frames.map { $0.timeMs - Self.start } == Self.offsets && inside.endMs - Self.start == 7_840)
    #expect(inside.refused == [])
    let late = try batch(names, json: #"{"version":1,"times":"in.txt","start":9223372036854775807}"#)
    try scratch.file(lastComponent(of: late) + "/in.txt", Array(Self.concat.utf8))
    #expect(throws: BadBatch.self) { try read(late, options()) }
    let outside = try scratch.file("out.txt", Array(Self.concat.utf8))
    for list in ["../out.txt", outside, "none.txt", "img1.png", "."] {
      #expect(throws: BadBatch.self, "\(list)") { try read(native(list), options()) }
    }
    let linked = try native("link.txt")
    try FileManager.default.createSymbolicLink(atPath: linked + "/link.txt", withDestinationPath: outside)
    #expect(throws: BadBatch.self) { try read(linked, options()) }
  }

  @Test func adviceOnPicturesWithoutTimesNamesTheListBesideThem() throws {
    let path = try batch((1...4).map { "img\($0).png" })
    let list = try scratch.file(lastComponent(of: path) + "/input.txt", Array(Self.concat.utf8))
    let error = #expect(throws: BadBatch.self) { try read(path, options()) }
    #expect(error?.advice == "--times \(list.shellWord) with --start T (film needs no start)")
    #expect(try read(path, list, start: "\(Self.start)").frames.count == 4)
    // A list of other pictures is no remedy.
    try scratch.file(lastComponent(of: path) + "/input.txt", Array("other.png 1767859512.0".utf8))
    #expect(#expect(throws: BadBatch.self) { try read(path, options()) }?.advice.contains("input.txt") == false)
  }

  @Test func concatListIsNoListOfBatches() {
    let error = #expect(throws: Failure.self) { try BatchList(Array(Self.concat.utf8), called: "a b.txt") }
    #expect(error?.description.hasSuffix("--times 'a b.txt'") == true)
  }
}
