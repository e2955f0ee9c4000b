import TestSupport
import Testing

@testable import Encoding
@testable import Films

/// The holds of an animated picture.
@Suite struct AnimationClockTests {
  /// Returns the holds of pictures that start at these instants; nil if they are too fast.
  private func held(
    _ starts: [Int64], end: Int64, shortest: Int64 = 2, shift: Int64 = 10
  ) -> [Int64]? {
    var clock = AnimationClock<Int>(shortestHold: shortest, maximumShift: shift)
    var all: [(picture: Int, hold: Int64)] = []
    for (number, start) in starts.enumerated() {
      guard let more = clock.append(number, at: start) else { return nil }
      all += more
    }
    guard let rest = clock.finish(at: end) else { return nil }
    all += rest
    #expect(all.map(\.picture) == Array(starts.indices))
    return all.map(\.hold)
  }

  struct Case: Sendable {
    let starts: [Int64]
    let end: Int64
    let holds: [Int64]?
  }

  @Test(arguments: [
    Case(starts: [0], end: 300, holds: [300]),
    // A film that rounds to nothing lasts a unit.
    Case(starts: [0], end: 0, holds: [1]),
    Case(starts: [0, 100, 250], end: 300, holds: [100, 150, 50]),
    // The second one waits, the third one does not.
    Case(starts: [0, 1, 7], end: 10, holds: [2, 5, 3]),
    Case(starts: [0, 1, 2, 3, 20], end: 30, holds: [2, 2, 2, 14, 10]),
    // The last one comes earlier.
    Case(starts: [0, 10, 19], end: 20, holds: [10, 8, 2]),
    Case(starts: [0, 10, 19, 20], end: 21, holds: [10, 7, 2, 2]),
    // No room for that: the last hold is short.
    Case(starts: [0, 2], end: 3, holds: [2, 1]),
    // No room at all.
    Case(starts: [0, 1], end: 2, holds: nil),
    Case(starts: Array(0...20), end: 100, holds: nil),
  ])
  func eachPictureHasItsHold(test: Case) {
    #expect(held(test.starts, end: test.end) == test.holds)
  }

  /// At 60 pictures a second a GIF falls behind; at 50 it does not.
  @Test func pictureIsNeverMovedByMoreThanTheMaximum() {
    #expect(held((0..<1_000).map { ($0 * 10 + 3) / 6 }, end: 1_667) == nil)
    #expect(held((0..<1_000).map { $0 * 2 }, end: 2_000) == Array(repeating: 2, count: 1_000))
  }

  @Test func startsAreThoseOfThePicturesWhereThereIsRoom() throws {
    var random = Random(seed: 3)
    for _ in 0..<200 {
      var starts: [Int64] = [0]
      for _ in 0..<random.int(0...100) { starts.append(starts[starts.count - 1] + random.int(2...400)) }
      let end = starts[starts.count - 1] + random.int(2...400)
      let holds = try #require(held(starts, end: end))
      #expect(holds.reduce(into: [0]) { $0.append($0[$0.count - 1] + $1) } == starts + [end])
    }
  }

  /// Bursts: no picture is lost, none is too short, none is far from its instant, and the end is the film's.
  @Test func burstsAreSpread() throws {
    var random = Random(seed: 4)
    var spread = 0
    for _ in 0..<500 {
      var starts: [Int64] = [0]
      for _ in 0..<random.int(1...60) {
        starts.append(starts[starts.count - 1] + (random.once(in: 4) ? random.int(0...1) : random.int(3...50)))
      }
      let end = starts[starts.count - 1] + random.int(0...50)
      guard let holds = held(starts, end: end) else { continue }
      spread += 1
      #expect(holds.dropLast().allSatisfy { $0 >= 2 } && holds.allSatisfy { $0 >= 1 })
      let places = holds.reduce(into: [Int64(0)]) { $0.append($0[$0.count - 1] + $1) }
      #expect(places.last == end && zip(places, starts).allSatisfy { abs($0 - $1) <= 10 })
    }
    #expect(spread > 400)
  }
}
