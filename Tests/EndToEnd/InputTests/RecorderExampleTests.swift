import Foundation
import TestSupport
import Testing

/// The functions that docs/write-a-recorder.md prints write batches that the worker publishes.
@Suite struct RecorderExampleTests {
  private let spool: TestSpool
  private let scratch: ScratchDirectory

  private static let frames: [(timeMs: Int64, file: String)] = [
    (1_767_859_512_340, Fixture("exact-1fps").path + "/0000.jpg"),
    (1_767_859_513_341, Fixture("exact-1fps").path + "/0001.jpg"),
    (1_767_859_514_668, Fixture("exact-1fps").path + "/0002.jpg"),
  ]

  init() throws {
    spool = try TestSpool()
    scratch = try ScratchDirectory()
    // A recorder can start before any worker.
    try FileManager.default.removeItem(atPath: spool.path)
    _ = try scratch.directory("program")
  }

  /// Writes a program: the page's code block in one language, and a call of its function.
  ///
  /// - Returns: the program's path.
  private func program(_ language: String, _ name: String, calling call: String) throws -> String {
    let page = try String(
      contentsOf: Fixture.root.appendingPathComponent("docs/write-a-recorder.md"), encoding: .utf8)
    let blocks = page.components(separatedBy: "```\(language)\n").dropFirst()
    try #require(blocks.count == 1, "\(blocks.count) blocks of \(language)")
    let code = blocks[1].components(separatedBy: "\n```")[0]
    return try scratch.file("program/\(name)", Array("\(code)\n\n\(call)\n".utf8))
  }

  /// Returns the frames as an expression of a language, from the instant and the file of each.
  private static func list(_ frame: (Int64, String) -> String) -> String {
    frames.map { frame($0.timeMs, $0.file) }.joined(separator: ", ")
  }

  /// Drains the spool and compares the published session with the frames.
  private func expectPublished() throws {
    #expect(try spool.names("tmp") == [])
    let incoming = try spool.names("incoming")
    #expect(incoming.count == 1 && incoming[0].hasPrefix("lobby@"), "\(incoming)")
    try spool.drain()
    #expect(try spool.names("quarantine") == [])
    let manifests = try PublishedSession(spool.output + "/lobby").manifests
    #expect(manifests.flatMap(\.frames).map(\.timeMs) == Self.frames.map(\.timeMs))
    #expect(manifests.flatMap(\.refused) == [])
    // A picture that does not change is not a gap. The session ends one interval after the last capture.
    #expect(manifests.flatMap(\.frames).map(\.holdMs) == [1_001, 1_327, 1_000])
    #expect(manifests.last?.final == true)
  }

  @Test func exampleInPythonIsPublished() throws {
    let frames = Self.list { "(\($0), pathlib.Path(r\"\($1)\").read_bytes())" }
    let path = try program(
      "python", "recorder.py", calling: "send(r\"\(spool.path)\", \"lobby\", [\(frames)], final=True)")
    try Tool.output(Tool.python, [path])
    try expectPublished()
  }

  @Test func exampleInSwiftIsPublished() throws {
    let frames = Self.list { "(\($0), try Data(contentsOf: URL(fileURLWithPath: \"\($1)\")))" }
    let path = try program(
      "swift", "main.swift",
      calling: """
        try send(to: URL(fileURLWithPath: "\(spool.path)"), session: "lobby", frames: [\(frames)], final: true)
        """)
    let compiled = try Tool.compile(["-o", scratch.path("program/recorder"), path])
    try #require(compiled.status == 0, "\(compiled.errors)")
    try Tool.output(scratch.path("program/recorder"), [])
    try expectPublished()
  }

  private static let hasKotlin = (try? Tool.run("kotlinc", ["-version"]).status) == 0

  @Test(.enabled(if: hasKotlin, "kotlinc is not installed; make lint-examples installs it"))
  func exampleInKotlinIsPublished() throws {
    let frames = Self.list { "Pair(\($0)L, Files.readAllBytes(Paths.get(\"\($1)\")))" }
    let path = try program(
      "kotlin", "recorder.kt",
      calling: "fun main() = send(Paths.get(\"\(spool.path)\"), \"lobby\", listOf(\(frames)), final = true)")
    let archive = scratch.path("program/recorder.jar")
    try Tool.output("kotlinc", [path, "-include-runtime", "-d", archive])
    try Tool.output("java", ["-jar", archive])
    try expectPublished()
  }
}
