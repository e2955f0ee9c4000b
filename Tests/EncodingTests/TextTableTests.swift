import Testing

@testable import Encoding

/// Tesseract's answers, and those of a program that an attacker has taken over.
@Suite struct TextTableTests {
  private static let head =
    "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n"
  private static let regions = [
    PictureRegion(x: 0, y: 0, width: 100, height: 50), PictureRegion(x: 200, y: 300, width: 80, height: 40),
  ]

  private func words(_ lines: String...) throws -> [FoundWord] {
    let text = Self.head + lines.joined(separator: "\n") + "\n"
    return try TextTable.words(in: Array(text.utf8), of: Self.regions)
  }

  private static let (first, second) = ("1\t1\t0\t0\t0\t0\t0\t0\t100\t50\t-1\t", "1\t2\t0\t0\t0\t0\t0\t0\t80\t40\t-1\t")

  @Test func wordsHaveTheirPlaceInThePicture() throws {
    let found = try words(
      Self.first, "4\t1\t1\t1\t1\t0\t10\t20\t30\t12\t-1\t", "5\t1\t1\t1\t1\t1\t10\t20\t30\t12\t96.917931\tHello",
      Self.second, "5\t2\t1\t1\t1\t1\t1\t2\t3\t4\t12\t(world)", "5\t2\t1\t1\t1\t2\t1\t2\t3\t4\t12\t—",
      "5\t2\t1\t1\t1\t2\t1\t2\t3\t4\t12\t ")
    #expect(
      found == [
        FoundWord(text: "Hello", box: PictureRegion(x: 10, y: 20, width: 30, height: 12), confidence: 96),
        FoundWord(text: "(world)", box: PictureRegion(x: 201, y: 302, width: 3, height: 4), confidence: 12),
      ])
  }

  @Test func pageWithoutWordsIsRead() throws { #expect(try words(Self.first, Self.second) == []) }

  @Test(arguments: [
    "", "5\t1\t1\t1\t1\t1\t10\t20\t30\t12\t96\tword before a page",
    first + "\n" + first, second + "\n" + first, first, first + "\n" + second + "\n1\t3\t0\t0\t0\t0\t0\t0\t1\t1\t-1\t",
    first + "\n" + second + "\n5\t2\t1\t1\t1\t1\t70\t2\t11\t4\t12\toutside",
    first + "\n" + second + "\n5\t2\t1\t1\t1\t1\t-1\t2\t11\t4\t12\tleft",
    first + "\n" + second + "\n5\t2\t1\t1\t1\t1\t1\t2\t3\t99999999999999999999\t12\tlarge",
    first + "\n" + second + "\n5\t2\t1\t1\t1\t1\t1\t2\t3\t4\tnan\tconfidence",
    first + "\n" + second + "\n5\t1\t1\t1\t1\t1\t1\t2\t3\t4\t12\tof an earlier page",
    first + "\n" + second + "\n5\t0\t1\t1\t1\t1\t1\t2\t3\t4\t12\tof no page",
    first + "\n" + second + "\n5\t2\t1", first + "\n" + second + "\nfive\t2\t1\t1\t1\t1\t1\t2\t3\t4\t12\tword",
    first + "\n" + second + "\nHTTP/1.1 200 OK",
  ])
  func anotherTableIsRefused(_ lines: String) {
    #expect(throws: BadTextTable.self) { try words(lines) }
  }

  @Test func wordsOfNoUseAreLeftOut() throws {
    let long = String(repeating: "x", count: 257)
    let found = try words(
      Self.first, Self.second, "5\t2\t1\t1\t1\t1\t1\t2\t3\t4\t12\t\(long)",
      "5\t2\t1\t1\t1\t1\t1\t2\t3\t4\t12\ta\u{1b}[2J", "5\t2\t1\t1\t1\t1\t1\t2\t0\t4\t12\tnarrow",
      "5\t2\t1\t1\t1\t1\t1\t2\t3\t0\t12\tflat")
    #expect(found == [])
    let line = Array("5\t2\t1\t1\t1\t1\t1\t2\t3\t4\t12\t".utf8) + [0x61, 0xFF]
    let text = Array((Self.head + Self.first + "\n" + Self.second + "\n").utf8)
    #expect(try TextTable.words(in: text + line, of: Self.regions) == [])
  }

  @Test func answerIsBounded() {
    let word = "5\t2\t1\t1\t1\t1\t1\t2\t3\t4\t12\tword\n"
    let many = String(repeating: word, count: TextTable.maximumWords + 1)
    #expect(throws: BadTextTable.self) { try words(Self.first, Self.second, many) }
    let large = [UInt8](repeating: UInt8(ascii: "\n"), count: TextTable.maximumBytes + 1)
    #expect(throws: BadTextTable.self) { try TextTable.words(in: large, of: Self.regions) }
  }
}
