import Foundation
import TestSupport
import Testing

/// `text` finds words that a person types letter by letter, in letters of any size: the region that it reads has all of the word.
@Suite(.enabled(if: Tool.readsText, "tesseract is not installed: scripts/setup test"))
struct TypedWordTests {
  /// Sizes of letters in pixels, and words of each.
  private static let sizes = Extent.of([16, 40], full: Array(stride(from: 16, through: 60, by: 4)))
  private static let words = Extent.of(1, full: 12)

  private struct Text: Decodable {
    struct Word: Decodable {
      let text: String
      let untilMs: Int64
    }

    let words: [Word]
  }

  /// Types words that had no part in the choice of the regions, and returns those that are found and those that are missed.
  private func type(_ size: Int, in scratch: ScratchDirectory) throws -> (found: [String], missed: [String]) {
    let name = "size\(size)"
    let script = Fixture.root.appendingPathComponent("Tests/reference/draw_typing.py").path
    let typed = try Tool.output(
      Tool.python, [script, scratch.directory(name), "\(size)", "\(size)", "\(Self.words)", "--caret"])
    let session = try EncoderWorker.encode(Fixture(file: scratch.path(name)), into: scratch)
    let run = try Tool.run(EncoderWorker.path, ["text", session.path])
    try #require(run.status == 0, "\(run.errors)")
    let read = try names(in: session.path).filter { $0.hasSuffix(".text.json") }.flatMap { name in
      try JSONDecoder().decode(Text.self, from: Data(contentsOf: URL(fileURLWithPath: session.path + "/" + name))).words
    }
    var (found, missed): ([String], [String]) = ([], [])
    for line in String(decoding: typed, as: UTF8.self).split(separator: "\n") {
      let parts = line.split(separator: " ")
      let (word, wholeMs) = (String(parts[0]), try #require(Int64(parts[1])))
      let isFound = read.contains {
        $0.untilMs > wholeMs && $0.text.trimmingCharacters(in: .punctuationCharacters) == word
      }
      if isFound { found.append(word) } else { missed.append("\(word) (\(size) px)") }
    }
    return (found, missed)
  }

  @Test func wordsTypedLetterByLetterAreFound() throws {
    let scratch = try ScratchDirectory()
    let results = try Self.sizes.map { try type($0, in: scratch) }
    let (found, missed) = (results.flatMap(\.found), results.flatMap(\.missed))
    #expect(found.count + missed.count == Self.sizes.count * Self.words)
    #expect(Double(found.count) >= 0.95 * Double(found.count + missed.count), "missed: \(missed)")
  }
}
