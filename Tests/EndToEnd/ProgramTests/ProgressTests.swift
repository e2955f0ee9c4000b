import Foundation
import TestSupport
import Testing

/// Commands show a progress bar on terminals only.
@Suite struct ProgressTests {
  private let spool: TestSpool
  private let session: String

  init() throws {
    spool = try TestSpool()
    let output = spool.scratch.path("published")
    #expect(try EncoderWorker.run("encode", Fixture("exact-1fps").path, "--output", output).status == 0)
    session = output + "/exact-1fps"
    try spool.add("gap")
    try spool.add("rotation")
  }

  /// The arguments of each command, and the unit of its bar.
  private var commands: [(words: [String], unit: String)] {
    let film = spool.scratch.path("film.mp4")
    return [
      (["--spool", spool.path, "--drain", "-v", "--keep-batches"], "of 2 batches"),
      (["encode", Fixture("gap").path, Fixture("odd-size").path, "-o", spool.scratch.path("own")], "of 2 batches"),
      (["stitch", session, "--to", film], "of 3 segments"),
      (["pictures", session, "--to", spool.scratch.path("pictures.zip")], "of 12 pictures"),
      (["film", Fixture("gap").path, "--to", film], "of 1 input"),
      (["verify", session], "of 3 segments"),
      (["reencode", session, "-o", spool.scratch.path("small"), "-q", "small"], "of 3 segments"),
    ]
  }

  @Test func terminalShowsABarThatIsErasedAtTheEnd() throws {
    for (words, unit) in commands {
      let shown = try Terminal.run(words)
      #expect(shown.status == 0, "\(shown.text)")
      #expect(shown.text.contains("░ ") && shown.text.contains(unit), "\(words): \(shown.text)")
      // The terminal keeps the text after the last erasure of each line.
      let lines = shown.text.replacing("\r\n", with: "\n").components(separatedBy: "\n")
      let left = lines.map { $0.components(separatedBy: "\r\u{1B}[K").last ?? "" }
      #expect(left.allSatisfy { !$0.contains("░") && !$0.contains("\u{1B}") }, "\(words): \(left)")
      #expect(left.contains { !$0.isEmpty })
    }
    #expect(try spool.names("done") == ["gap", "rotation"])
  }

  @Test func pipeGetsNoBar() throws {
    for (words, _) in commands {
      let result = try Tool.run(EncoderWorker.path, words, environment: ["TERM": "xterm"])
      #expect(result.status == 0)
      #expect(!(result.text + result.errors).contains { "░█\r\u{1B}".contains($0) }, "\(words)")
    }
  }

  @Test func terminalThatCannotEraseALineShowsNoBar() throws {
    for term in ["dumb", ""] {
      let shown = try Terminal.run(["verify", session], environment: ["TERM": term])
      #expect(shown.status == 0 && !shown.text.contains("░") && !shown.text.contains("\u{1B}"))
    }
  }

  @Test(arguments: [1, 12, 20, 30, 46])
  func barIsShorterThanANarrowTerminal(columns: Int) throws {
    let shown = try Terminal.run(["verify", session], columns: columns)
    #expect(shown.status == 0)
    let bars = shown.text.components(separatedBy: "\r\u{1B}[K").dropFirst().filter { !$0.contains("\n") }
    #expect(!bars.isEmpty && bars.allSatisfy { $0.count < columns }, "\(bars)")
  }
}
