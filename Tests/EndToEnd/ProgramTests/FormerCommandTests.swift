import Foundation
import TestSupport
import Testing

/// Names of commands and options of earlier versions answer with their successors, and are in no help.
@Suite struct FormerCommandTests {
  private struct Row {
    let words: [String]
    let now: String
  }

  /// The rows of the table in docs/cli.md.
  private func rows() throws -> [Row] {
    let page = try String(contentsOf: Fixture.root.appendingPathComponent("docs/cli.md"), encoding: .utf8)
    let table = page.components(separatedBy: "\n| before | now |\n|---|---|\n").dropFirst().first ?? ""
    return table.split(separator: "\n").prefix { $0.hasPrefix("|") }.map { row in
      let cells = row.replacing("\\|", with: "|").split(separator: "`")
      return Row(words: cells[1].split(separator: " ").map(String.init), now: String(cells[3]))
    }
  }

  @Test func formerNameTellsItsSuccessorAndEndsWith64() throws {
    let rows = try rows()
    #expect(
      rows.map { $0.words.joined(separator: " ") } == [
        "frame", "sheet", "inspect", "import", "playlist", "notify", "notify list", "notify show", "notify retry",
        "notify purge",
        "encode --from", "collect --every", "collect --idle", "pictures --format", "reencode --time-zone",
        "prune --segments",
      ])
    for row in rows {
      let words = row.words
      for call in [words, words + ["x", "--to", "a.png"], words + ["--help"], ["help"] + words, ["config"] + words] {
        let result = try Tool.run(EncoderWorker.path, call)
        #expect(result.status == 64 && result.text.isEmpty, "\(call): \(result.status)")
        #expect(result.errors == "\(words.joined(separator: " ")) is now: encoder-worker \(row.now)\n", "\(call)")
      }
    }
  }

  @Test func successorExistsAndNoHelpHasTheFormerWord() throws {
    let help = try EncoderWorker.run("--help").text
    let dump = try EncoderWorker.run("--experimental-dump-help").text
    for row in try rows() {
      if let option = row.words.last, option.hasPrefix("--") {
        let own = try EncoderWorker.run("help", row.words[0]).text
        #expect(!own.contains("  \(option) "), "\(row.words)")
      } else {
        #expect(!help.contains("  \(row.words[0]) ") && !dump.contains("\"commandName\" : \"\(row.words[0])\""))
      }
      let now = row.now.split(separator: " ").map(String.init)
      let command = now.prefix { !$0.hasPrefix("-") && $0 == $0.lowercased() }
      let options = now.filter { $0.hasPrefix("--") }
      let own = try Tool.run(EncoderWorker.path, ["help"] + command)
      #expect(own.status == 0 && !options.isEmpty, "\(row.now)")
      for option in options { #expect(own.text.contains(option), "\(row.now): \(option)") }
    }
  }
}
