// Imports the library without @testable, because an embedding server sees only the public API.
import Foundation
import SegmentEncoder
import Synchronization
import TestSupport
import Testing

/// The asynchronous form of the encoder: order, back-pressure, cancellation, many at once.
@Suite struct FrameSegmentsTests {
  private static let startMs: Int64 = 1_767_859_512_000

  /// A picture of one grey, whose value tells its number.
  private static func frame(_ number: Int, side: Int = 32, stepMs: Int64 = 1_000) -> CapturedFrame {
    CapturedFrame(
      pixels: [UInt8](repeating: UInt8(truncatingIfNeeded: 20 + 10 * number), count: 4 * side * side), isBGRA: true,
      isPremultiplied: true, width: side, height: side, timeMs: startMs + Int64(number) * stepMs,
      source: "\(number)")
  }

  /// Frames that count how many of them were asked for, and wait for ever at one of them.
  private struct CountedFrames: AsyncSequence, Sendable {
    typealias Element = CapturedFrame

    let count: Int
    let asked: SharedCount
    var waitsAt = Int.max
    var failsAt = Int.max

    struct SourceFailure: Error {}

    func makeAsyncIterator() -> Iterator { Iterator(frames: self) }

    struct Iterator: AsyncIteratorProtocol {
      let frames: CountedFrames
      var number = 0

      mutating func next() async throws -> CapturedFrame? {
        guard number < frames.count else { return nil }
        frames.asked.add()
        if number == frames.waitsAt { try await Task.sleep(for: .seconds(86_400)) }
        if number == frames.failsAt { throw SourceFailure() }
        defer { number += 1 }
        return FrameSegmentsTests.frame(number)
      }
    }
  }

  private final class SharedCount: Sendable {
    private let count = Atomic(0)
    var value: Int { count.load(ordering: .relaxed) }
    func add() { count.add(1, ordering: .relaxed) }
  }

  private func synchronous(_ count: Int, _ id: SessionID) throws -> [Segment] {
    var encoder = try FrameEncoder(session: id)
    var segments: [Segment] = []
    for number in 0..<count { segments += try encoder.append(Self.frame(number)) }
    return segments + (try encoder.finish())
  }

  @Test func segmentsAreThoseOfTheSynchronousEncoder() async throws {
    let id = try #require(SessionID("lobby"))
    let expected = try synchronous(23, id)
    var segments: [Segment] = []
    for try await segment in CountedFrames(count: 23, asked: SharedCount()).segments(of: id) {
      segments.append(segment)
    }
    #expect(segments.count == 5)
    #expect(segments.map(\.video) == expected.map(\.video) && segments.map(\.manifest) == expected.map(\.manifest))
  }

  @Test func framesAreAskedForAsSegmentsAreTaken() async throws {
    let asked = SharedCount()
    let segments = CountedFrames(count: 1_000, asked: asked).segments(of: try #require(SessionID("lobby")))
    var iterator = segments.makeAsyncIterator()
    #expect(asked.value == 0)
    for taken in 1...3 {
      #expect(try await iterator.next() != nil)
      // The frame that opens the next segment closes this one.
      #expect(asked.value == 5 * taken + 1)
    }
  }

  @Test func refusedFramesAreListedInTheirSegment() async throws {
    let bad = CapturedFrame(image: [1, 2, 3], timeMs: Self.startMs + 500, source: "bad")
    let frames = AsyncStream { continuation in
      for frame in [Self.frame(0), bad, Self.frame(1)] { continuation.yield(frame) }
      continuation.finish()
    }
    var segments: [Segment] = []
    for try await segment in frames.segments(of: try #require(SessionID("lobby"))) { segments.append(segment) }
    #expect(segments.count == 1 && segments[0].frames.count == 2 && segments[0].refused.map(\.source) == ["bad"])
    let none = AsyncStream { continuation in
      continuation.yield(bad)
      continuation.finish()
    }
    await #expect(throws: FrameEncoderError.self) {
      for try await _ in none.segments(of: try #require(SessionID("lobby"))) {}
    }
  }

  @Test func errorOfTheFramesEndsTheIteration() async throws {
    let frames = CountedFrames(count: 100, asked: SharedCount(), failsAt: 13)
    var count = 0
    await #expect(throws: CountedFrames.SourceFailure.self) {
      for try await _ in frames.segments(of: try #require(SessionID("lobby"))) { count += 1 }
    }
    #expect(count == 2)
  }

  @Test(arguments: [0, 1, 5, 7]) func cancelledTaskEndsTheIteration(waitsAt: Int) async throws {
    let asked = SharedCount()
    let id = try #require(SessionID("lobby"))
    let task = Task {
      for try await _ in CountedFrames(count: 100, asked: asked, waitsAt: waitsAt).segments(of: id) {}
    }
    try await eventually("the frame is asked for") { asked.value == waitsAt + 1 }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(asked.value == waitsAt + 1)
  }

  @Test func taskThatIsCancelledBeforehandEncodesNothing() async throws {
    let asked = SharedCount()
    let id = try #require(SessionID("lobby"))
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      for try await _ in CountedFrames(count: 100, asked: asked).segments(of: id) {}
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(asked.value == 0)
  }

  @Test func manySessionsAreEncodedAtOnce() async throws {
    let count = Extent.of(100, full: 1_000)
    let expected = try synchronous(20, #require(SessionID("s"))).map(\.video)
    try await withThrowingTaskGroup(of: [[UInt8]].self) { group in
      for number in 0..<count {
        group.addTask {
          var videos: [[UInt8]] = []
          let frames = CountedFrames(count: 20, asked: SharedCount())
          for try await segment in frames.segments(of: try #require(SessionID("s\(number)"))) {
            videos.append(segment.video)
          }
          return videos
        }
      }
      for try await videos in group { #expect(videos == expected) }
    }
  }
}
