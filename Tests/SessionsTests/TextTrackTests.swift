import Testing

@testable import Encoding
@testable import FrameBatches
@testable import Sessions

/// Which words are visible when.
@Suite struct TextTrackTests {
  private static let size = PixelSize(width: 320, height: 160)

  /// A change of the blocks of 16×16 pixels in these columns and rows; all of them without any.
  private func change(_ columns: Range<Int>, _ rows: Range<Int>) -> TextChange {
    let flags = (0..<200).map { columns.contains($0 % 20) && rows.contains($0 / 20) }
    return TextChange(of: flags, in: Self.size)
  }

  private let whole = TextChange(of: nil, in: size)

  private func word(_ text: String, x: Int, y: Int = 0) -> FoundWord {
    FoundWord(text: text, box: PictureRegion(x: x, y: y, width: 40, height: 14), confidence: 90)
  }

  private func shown(_ words: [VisibleWord]) -> [String] {
    words.map { "\($0.text) \($0.shownMs.lowerBound)-\($0.shownMs.upperBound)" }
  }

  @Test func wordStaysUntilItsAreaChanges() {
    var track = TextTrack()
    track.show([word("one", x: 0), word("two", x: 160)], whole, atMs: 1_000)
    // A change elsewhere; the words around it are read again, and are known.
    track.show([word("two", x: 160), word("three", x: 240)], change(15..<18, 0..<1), atMs: 2_000)
    track.show([], change(0..<3, 0..<1), atMs: 3_500)
    #expect(shown(track.finish(atMs: 5_000)) == ["one 1000-3500", "two 1000-5000", "three 2000-5000"])
    #expect(track.pictures == 3)
  }

  @Test func wordBesideAChangeIsTheSameWord() {
    var track = TextTrack()
    track.show([word("hello", x: 0)], whole, atMs: 1_000)
    // The caret is in the same block: the word is read again, a pixel away.
    track.show([word("hello", x: 1)], change(0..<1, 0..<1), atMs: 2_000)
    track.show([word("help", x: 0)], change(0..<3, 0..<1), atMs: 3_000)
    // The same word at another place is another one.
    track.show([word("help", x: 160), word("help", x: 0)], change(10..<13, 0..<1), atMs: 4_000)
    #expect(shown(track.finish(atMs: 5_000)) == ["hello 1000-3000", "help 3000-5000", "help 4000-5000"])
  }

  /// A large letter is typed some blocks beside the word.
  @Test func wordThatGrowsReplacesItsBeginning() {
    var track = TextTrack()
    track.show([word("one", x: 0), word("pass", x: 80)], whole, atMs: 1_000)
    let longer = FoundWord(
      text: "passw", box: PictureRegion(x: 80, y: 0, width: 90, height: 14), confidence: 90)
    track.show([longer], change(9..<11, 0..<1), atMs: 2_000)
    #expect(shown(track.finish(atMs: 5_000)) == ["one 1000-5000", "pass 1000-2000", "passw 2000-5000"])
  }

  @Test func pictureThatCannotBeReadEndsTheWordsOfItsChange() {
    var track = TextTrack()
    track.show([word("one", x: 0), word("two", x: 160)], whole, atMs: 1_000)
    track.show(nil, change(0..<2, 0..<1), atMs: 2_000)
    #expect(track.unreadMs == [2_000] && track.pictures == 1)
    #expect(shown(track.finish(atMs: 5_000)) == ["one 1000-2000", "two 1000-5000"])
  }

  @Test func carriedWordsBeginWithTheSegment() {
    var first = TextTrack()
    first.show([word("one", x: 0)], whole, atMs: 1_000)
    var second = TextTrack()
    second.carry(first.finish(atMs: 6_000), atMs: 6_000)
    #expect(shown(second.finish(atMs: 11_000)) == ["one 6000-11000"])
    #expect(second.pictures == 0)
  }

  @Test func wordsAreBounded() {
    var track = TextTrack()
    let many = (0..<20_000).map { word("w", x: $0 % 280, y: $0 % 140) }
    for nowMs: Int64 in 0..<4 { track.show(many, whole, atMs: nowMs) }
    #expect(track.finish(atMs: 10).count <= SegmentText.maximumWords)
  }
}
