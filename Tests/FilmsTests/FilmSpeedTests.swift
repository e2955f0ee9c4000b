import Testing

@testable import Films

@Suite struct FilmSpeedTests {
  @Test(arguments: [
    ("1", "1"), ("0.1", "0.1"), ("100", "100"), ("100.0", "100"), ("100000", "100000"), ("2.50", "2.5"),
    ("0.333", "0.333"), ("07", "7"),
    ("12.005", "12.005"),
  ])
  func speedIsADecimal(text: String, canonical: String) {
    #expect(FilmSpeed(text)?.description == canonical)
  }

  @Test(arguments: [
    "", "0", "0.09", "0.099", "100000.001", "100001", "-1", "+1", "1.", ".5", "1.2345", "1,5", "1e2", "2x", "٣", "nan",
    " 1",
    "99999999999999999999", "1.0.0",
  ])
  func otherTextsAreRefused(text: String) { #expect(FilmSpeed(text) == nil) }

  @Test func boundsAreRoundedOneByOne() throws {
    var clock = FilmClock(try #require(FilmSpeed("0.7")))
    let bounds: [Int64] = (0..<10_000).map { $0 * 91 }
    #expect(bounds.map { clock.film($0) } == bounds.map { $0 * 10 / 7 })
    // The longest time that a manifest can have.
    let day = try #require(FilmSpeed("0.1"))
    #expect(day.film((1 << 42) * 90) == (1 << 42) * 900)
  }

  @Test func pictureOfLessThanATickGetsOneAndTheNextAreInTimeAgain() throws {
    var clock = FilmClock(try #require(FilmSpeed("100")))
    #expect([0, 10, 20, 20, 30, 1_000, 1_090].map { clock.film($0) } == [0, 1, 2, 2, 3, 10, 11])
  }
}
