import Foundation
import TestSupport
import Testing

/// `run --export`: files of each session that has ended, made once.
@Suite struct ExportTests {
  private static let orders = [
    "film.mp4", "fast.gif:--speed 20 --max-side 120", "captions.vtt", "pictures.jsonl", "poster.jpg:--from +2s",
  ]

  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  private var session: String { spool.output + "/walk" }
  private var exports: String { session + "/exports" }

  /// Adds a batch that ends its session, with a label.
  private func add(_ name: String = "walk@1", from start: Int64 = 1_767_859_512_340, final: Bool = true) throws {
    let path = spool.path + "/tmp/" + name
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    let frames = try (0..<6).map { number in
      try FileManager.default.copyItem(
        atPath: Fixture("exact-1fps").path + "/000\(number).jpg", toPath: path + "/\(number).jpg")
      return #"{"file":"\#(number).jpg","timeMs":\#(start + 1_000 * Int64(number))}"#
    }
    let label = #"{"timeMs":\#(start + 1_500),"text":"Add to cart","kind":"step"}"#
    let json =
      #"{"version":1,"session":"walk","final":\#(final),"labels":[\#(label)],"frames":[\#(frames.joined(separator: ","))]}"#
    try Data(json.utf8).write(to: URL(fileURLWithPath: path + "/batch.json"))
    try FileManager.default.moveItem(atPath: path, toPath: spool.path + "/incoming/" + name)
  }

  private func options(_ orders: [String]) -> [String] { orders.flatMap { ["--export", $0] } }

  private func drain(_ orders: [String], _ more: String...) throws -> Tool.Result {
    try Tool.run(
      EncoderWorker.path, ["--spool", spool.path, "--drain"] + options(orders) + more, verifying: false)
  }

  private func bytes(_ path: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path)) }

  private func stitched(_ name: String, _ options: String...) throws -> Data {
    let path = spool.scratch.path("own-" + name)
    let run = try Tool.run(EncoderWorker.path, ["stitch", session, "--to", path] + options)
    try #require(run.status == 0, "\(run.errors)")
    return try bytes(path)
  }

  @Test func filesAreWhatTheCommandsMake() throws {
    try add()
    let run = try drain(Self.orders, "--json")
    #expect(run.status == 0, "\(run.errors)")
    #expect(try bytes(exports + "/film.mp4") == stitched("film.mp4"))
    #expect(try bytes(exports + "/fast.gif") == stitched("fast.gif", "--speed", "20", "--max-side", "120"))
    #expect(try bytes(exports + "/poster.jpg") == stitched("poster.jpg", "--from", "+2s"))
    let captions = try String(decoding: bytes(exports + "/captions.vtt"), as: UTF8.self)
    #expect(captions.contains("00:00:01.500 --> 00:00:06.000\nAdd to cart"), "\(captions)")
    let pictures = try String(decoding: bytes(exports + "/pictures.jsonl"), as: UTF8.self)
    #expect(pictures.contains("Add to cart"))
    #expect(try names(in: exports) == ["captions.vtt", "fast.gif", "film.mp4", "pictures.jsonl", "poster.jpg"])
    let events = String(decoding: run.output, as: UTF8.self).split(separator: "\n").filter {
      $0.contains(#""event":"session.exported""#)
    }
    #expect(events.count == 1 && events.first?.contains("exports/film.mp4") == true, "\(run.output)")
    let verify = try EncoderWorker.run("verify", session)
    #expect(verify.status == 0, "\(verify.output)")
    #expect(!FileManager.default.fileExists(atPath: spool.output + "/.ending/walk.json"))
  }

  @Test func filesAreMadeOnceAndAtTheEndOnly() throws {
    try add(final: false)
    #expect(try drain(["film.mp4"]).status == 0 && !FileManager.default.fileExists(atPath: exports))
    try add("walk@2", from: 1_767_859_518_340)
    #expect(try drain(["film.mp4"]).status == 0)
    let film = try bytes(exports + "/film.mp4")
    let ended = try EncoderWorker.run("end", "walk", "--output", spool.output)
    #expect(ended.status == 0 || ended.status == 65, "\(ended.errors)")
    #expect(try drain(["film.mp4", "poster.png"]).status == 0)
    #expect(try bytes(exports + "/film.mp4") == film)
  }

  /// A worker that dies before the files are made: the next one makes them.
  @Test func endThatIsOwedMakesThem() throws {
    try add()
    let worker = try RunningWorker(
      ["--spool", spool.path, "--jobs", "1"] + options(["film.mp4"]))
    try spool.waitUntil("published") { FileManager.default.fileExists(atPath: session + "/session-end.json") }
    worker.signal(SIGKILL)
    #expect(try drain(["film.mp4"]).status == 0)
    #expect(try bytes(exports + "/film.mp4") == stitched("film.mp4"))
  }

  @Test(arguments: [
    ("film.avi", ".mp4"), ("film", ".mp4"), ("../film.mp4", "name a file"), ("film.mp4:--to x", "--to"),
    ("film.mp4:--sped 2", "--sped"), ("film.mp4:--from later", "from"), (".hidden.mp4", "name a file"),
  ]) func badOrderIsWrongUsage(order: String, word: String) throws {
    let run = try drain([order])
    #expect(run.status == 64 && run.errors.contains(word), "\(run.errors)")
  }

  @Test func twoOfOneNameAreWrongUsage() throws {
    let run = try drain(["film.mp4", "film.mp4:--speed 2"])
    #expect(run.status == 64 && run.errors.contains("there twice"), "\(run.errors)")
  }
}
