import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON

/// The place of pointer events on the timeline, and the space of their coordinates.
@Suite struct PointerPlacementTests: PointerPlacementSuite {
  // MARK: - Times

  @Test func eventBelongsToTheSegmentThatContainsItsInstant() throws {
    let shots = (0..<10).map { Shot(timeMs: 1_000 * $0) }
    let events = [-1, 0, 4_999, 5_000, 9_999, 10_000].map { Self.event($0, .move, 1, 2) }
    let found = try Self.place(events, on: shots, endMs: 10_000)
    #expect(found.segments.count == 2)
    let both = ["0 move 0 1.0 2.0", "4999 move 0 1.0 2.0"]
    #expect(found.touches.map(Self.texts) == [both, both + ["4999 cancel 0 1.0 2.0"]])
    #expect(found.warnings == ["2 pointer events are left out: no segment has their time"])
  }

  @Test func eventInAGapIsDroppedAndEndsTheTrailBeforeIt() throws {
    let shots = [Shot(timeMs: 0), Shot(timeMs: 20_000)]
    let events = [
      Self.event(100, .down, 1, 2), Self.event(4_000, .move, 3, 4), Self.event(10_000, .move, 5, 6),
      Self.event(20_100, .move, 7, 8),
    ]
    let found = try Self.place(events, on: shots, endMs: 21_000)
    #expect(
      found.touches.map(Self.texts) == [
        ["100 down 0 1.0 2.0", "4000 move 0 3.0 4.0", "4000 cancel 0 3.0 4.0"], ["100 move 0 7.0 8.0"],
      ])
    #expect(found.warnings == ["1 pointer event is left out: no segment has their time"])
  }

  @Test func batchWithoutEventsHasNoTouchesAndNoWarnings() throws {
    let found = try Self.place([], on: [Shot(timeMs: 0)], endMs: 1_000)
    #expect(found.touches == [nil] && found.warnings == [])
  }

  @Test func cancelledPlacementThrows() throws {
    var list = PointerEventList()
    list.append(Self.event(0, .down, 1, 1), limit: 9)
    let batch = Batch(
      name: "b", session: SessionID("s")!, intervalMs: 1, endMs: 2, capture: .interval, isFinal: false, frames: [],
      refused: [], warnings: [], metadata: .null, pointers: PointerTrack(&list, blindMs: [], limits: Limits()))
    #expect(throws: Cancelled.self) { try PointerPlacement(of: batch, on: [], cancellation: Cancellation { true }) }
  }

  // MARK: - Coordinates

  @Test func coordinatesStayAsCapturedWithTheSizeOfTheirSpace() throws {
    for (space, size, point) in [
      (PointerSpace.pixels, (100.0, 200.0), (12.25, 34.5)), (.picture(scale: 3), (33.33, 66.67), (12.25, 34.5)),
      (.area(x: 2, y: 4, width: 390, height: 844), (390, 844), (10.25, 30.5)),
    ] {
      let found = try Self.place([Self.event(0, .down, 12.25, 34.5, space: space)], on: [Shot(timeMs: 0)], endMs: 1_000)
      let touches = try #require(found.touches[0])
      #expect((touches.width, touches.height) == size)
      #expect((touches.events[0].x, touches.events[0].y) == point)
    }
  }

  @Test func allCoordinatesOfASegmentAreInTheSpaceOfItsFirstEvent() throws {
    let events = [
      Self.event(0, .down, 50, 100), Self.event(1, .move, 195, 422, space: .area(x: 0, y: 0, width: 390, height: 844)),
    ]
    let touches = try #require(try Self.place(events, on: [Shot(timeMs: 0)], endMs: 1_000).touches[0])
    #expect((touches.width, touches.height) == (100, 200))
    #expect(touches.events.map(\.x) == [50, 50] && touches.events.map(\.y) == [100, 100])
  }

  @Test func spaceWithoutExtentIsNotUsed() throws {
    let space = PointerSpace.area(x: 0, y: 0, width: 0.001, height: 5)
    let found = try Self.place([Self.event(0, .down, 0, 0, space: space)], on: [Shot(timeMs: 0)], endMs: 1_000)
    #expect(found.touches == [nil])
  }
}
