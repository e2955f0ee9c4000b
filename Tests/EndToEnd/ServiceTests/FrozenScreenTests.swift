import Foundation
import JSON
import TestSupport
import Testing

/// `run --frozen`: a kiosk whose screen does not change any more.
@Suite struct FrozenScreenTests {
  private static let startMs: Int64 = 1_767_859_500_000

  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  /// Adds a batch with a picture each 20 seconds.
  ///
  /// - Parameters:
  ///   - first: the number of its first picture.
  ///   - greys: a picture of one grey for each number; nil for one of two halves.
  private func add(_ name: String, from first: Int, _ greys: [Int?], capture: String = "interval") throws {
    let draft = spool.path + "/tmp/" + name
    try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
    let frames = try greys.enumerated().map { index, grey in
      let samples = (0..<64 * 48).flatMap { pixel in
        [Int](repeating: grey ?? (pixel < 32 * 48 ? 10 : 240), count: 3)
      }
      let file = PNGImage.file(width: 64, height: 48, depth: 8, kind: 2, samples: samples)
      try Data(file).write(to: URL(fileURLWithPath: draft + "/\(index).png"))
      return #"{"file":"\#(index).png","timeMs":\#(Self.startMs + 20_000 * Int64(first + index))}"#
    }
    let end = Self.startMs + 20_000 * Int64(first + greys.count)
    let json =
      #"{"version":1,"session":"hall","capture":"\#(capture)","endMs":\#(end),"frames":[\#(frames.joined(separator: ","))]}"#
    try Data(json.utf8).write(to: URL(fileURLWithPath: draft + "/batch.json"))
    try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/" + name)
  }

  private func events(_ run: Tool.Result) throws -> [String] {
    let lines = String(decoding: run.output, as: UTF8.self).split(separator: "\n").map(String.init)
    let schema = try JSONSchema("docs/event.schema.json")
    for line in lines { #expect(try schema.faults(of: line) == []) }
    return lines.filter { $0.contains(#""event":"session.frozen""#) }
  }

  @Test func screenThatStopsIsAnEventAndALine() throws {
    try add("a@1", from: 0, [nil, 0, 0])
    try add("a@2", from: 3, [0, 0, 0])
    try add("a@3", from: 6, [0, 200, 0])
    let run = try spool.drain("--frozen", "1", "--json", "--jobs", "1", "--log-level", "info")
    #expect(run.status == 0, "\(run.errors)")
    let events = try events(run)
    #expect(events.count == 1, "\(run.output)")
    let event = try JSONParser.parse(Array((events.first ?? "{}").utf8)).object ?? [:]
    #expect(event["session"]?.string == "hall" && event["blank"] == .bool(true))
    #expect(event["sinceMs"]?.integer == Self.startMs + 20_000)
    #expect(event["untilMs"]?.integer == Self.startMs + 100_000)
    #expect(run.errors.contains("session.frozen") && run.errors.contains("blank=true"), "\(run.errors)")
    #expect(run.errors.contains("session.unfrozen"), "\(run.errors)")
  }

  /// A picture of more than one colour is not blank. A recorder that captures on change sends nothing while nothing changes, and
  /// without the option nobody looks.
  @Test func recorderThatCapturesOnChangeIsNotJudged() throws {
    try add("a@1", from: 0, [nil, nil, nil, nil, nil], capture: "onChange")
    #expect(try events(spool.drain("--frozen", "1", "--json")) == [])
    try add("a@2", from: 5, [nil, nil, nil, nil, nil])
    #expect(try events(spool.drain("--json")) == [])
    try add("a@3", from: 10, [nil, nil, nil, nil, nil])
    let events = try events(spool.drain("--frozen", "1", "--json"))
    #expect(events.count == 1 && events.first?.contains(#""blank":false"#) == true)
    for wrong in ["0", "10081", "x"] {
      #expect(try Tool.run(EncoderWorker.path, ["--spool", spool.path, "--drain", "--frozen", wrong]).status == 64)
    }
  }

  /// A still screen costs one decode more a batch: its video is the same.
  @Test func optionChangesNoFile() throws {
    try add("a@1", from: 0, [nil, nil, 7, 7])
    _ = try spool.drain("--frozen", "1")
    let other = try TestSpool()
    try FrozenScreenTests(other).add("a@1", from: 0, [nil, nil, 7, 7])
    _ = try other.drain()
    let files = try names(in: spool.output + "/hall")
    #expect(try files == names(in: other.output + "/hall"))
    for file in files where !file.hasPrefix(".") {
      let paths = [spool, other].map { URL(fileURLWithPath: $0.output + "/hall/" + file) }
      #expect(try Data(contentsOf: paths[0]) == Data(contentsOf: paths[1]), "\(file)")
    }
  }

  private init(_ spool: TestSpool) { self.spool = spool }

  @Test func metricsCountFrozenScreens() throws {
    let worker = try RunningServer(["run", "--spool", spool.path, "--frozen", "1"])
    #expect(try worker.get("/metrics").text.contains("\nencoder_worker_frozen_screens 0\n"))
    try add("a@1", from: 0, [0, 0, 0, 0])
    try spool.waitUntil("the screen is counted") {
      try worker.get("/metrics").text.contains("\nencoder_worker_frozen_screens 1\n")
    }
    #expect(try worker.get("/metrics").text.contains("\nencoder_worker_blank_screens 1\n"))
    #expect(worker.stop() == 0)
  }
}
