// Imports the library without @testable, because an embedding server sees only the public API.
import Foundation
import SegmentEncoder
import Synchronization
import TestSupport
import Testing

/// A stream that breaks off says why, and leaves nothing behind.
@Suite struct StreamFailureTests {
  private static let startMs: Int64 = 1_767_859_512_000

  private static func frame(_ number: Int, width: Int = 32) -> CapturedFrame {
    CapturedFrame(
      pixels: [UInt8](repeating: UInt8(20 + 10 * number), count: 4 * 32 * width), isBGRA: true, isPremultiplied: true,
      width: width, height: 32, timeMs: startMs + 1_000 * Int64(number))
  }

  private let id: SessionID

  init() throws { id = try #require(SessionID("lobby")) }

  // MARK: nothing is left

  /// One kind of failure in a program of its own, which counts its files, threads, children and memory after each round. Three
  /// rounds break hundreds of streams off: at each frame, each segment, each failure.
  @Test(arguments: ["cancelled", "left", "source", "encoder", "abandoned", "store"], [true, false])
  func brokenStreamsLeaveNothing(way: String, isSandboxed: Bool) throws {
    try breakStreams(way, isSandboxed: isSandboxed)
  }

  @Test(arguments: [false]) func manyStreamsAtOnceLeaveNothing(isSandboxed: Bool) throws {
    try breakStreams("crowd", isSandboxed: isSandboxed)
  }

  @Test(arguments: ["decoder", "server", "descriptor"]) func failingDecodersLeaveNothing(way: String) throws {
    try breakStreams(way, isSandboxed: true)
  }

  @Test func missingThreadIsAFailureOfTheMachine() throws { try breakStreams("thread", isSandboxed: false) }

  private func breakStreams(_ way: String, isSandboxed: Bool) throws {
    let scratch = try ScratchDirectory()
    let directory = URL(fileURLWithPath: try scratch.directory("own"))
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: directory.path)
    // An unprivileged user can reach this copy. The superuser may start any number of threads.
    let program = scratch.path("BrokenStreams")
    let built = URL(fileURLWithPath: EncoderWorker.path).deletingLastPathComponent()
      .appendingPathComponent("BrokenStreams")
    try FileManager.default.copyItem(atPath: built.path, toPath: program)
    let script = """
      user=
      [ "$2" != thread ] || [ "$(id -u)" != 0 ] || user="setpriv --reuid=65534 --regid=65534 --clear-groups"
      exec $user "$@"
      """
    let result = try Tool.run(
      "sh", ["-c", script, "sh", program, way, Fixture("jittered").path] + (isSandboxed ? ["sandbox"] : []),
      in: directory, environment: ["TMPDIR": directory.path, "HOME": directory.path])
    #expect(result.status == 0 && result.errors.isEmpty, "\(result.text)\(result.errors)")
    #expect(try names(in: directory.path) == [])
  }

  // MARK: errors

  private struct SourceFailure: Error {}

  private final class Counter: Sendable {
    private let count = Atomic(0)
    var value: Int { count.load(ordering: .relaxed) }
    /// Returns the number of calls before this one.
    func next() -> Int { count.add(1, ordering: .relaxed).oldValue }
  }

  /// The segments before the failure are those of a whole stream. The open one is not returned.
  @Test func errorOfTheSourceComesAfterTheSegmentsBeforeIt() async throws {
    let count = 18
    var encoder = try FrameEncoder(session: id)
    // The segments that are complete before each frame.
    var complete: [[Segment]] = [[]]
    for number in 0..<count { complete.append(complete[number] + (try encoder.append(Self.frame(number)))) }
    #expect(complete[count].count == 3)
    for place in 0...count {
      let asked = Counter()
      let frames = AsyncThrowingStream {
        let number = asked.next()
        if number == place { throw SourceFailure() }
        return Self.frame(number)
      }
      var segments: [Segment] = []
      await #expect(throws: SourceFailure.self, "at \(place)") {
        for try await segment in frames.segments(of: id) { segments.append(segment) }
      }
      #expect(segments.map(\.video) == complete[place].map(\.video), "at \(place)")
      #expect(segments.map(\.manifest) == complete[place].map(\.manifest), "at \(place)")
    }
  }

  /// AsyncStream ends when its task is cancelled, and throws nothing.
  @Test(arguments: [0, 1, 5, 7]) func streamThatEndsByCancellationIsNoWholeSession(count: Int) async throws {
    let (asked, isWaiting) = (Counter(), Counter())
    let task = Task { [id] in
      let frames = AsyncStream {
        let number = asked.next()
        if number < count { return Self.frame(number) }
        _ = isWaiting.next()
        try? await Task.sleep(for: .seconds(86_400))
        return nil
      }
      for try await _ in frames.segments(of: id) {}
    }
    try await eventually("all frames are taken") { isWaiting.value == 1 }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  /// libx264 takes at most 16 384 pixels a side.
  @Test func errorOfTheEncoderEndsTheStreamAndKeepsItsSegments() throws {
    var options = BatchEncoder.Options()
    options.limits.side = 20_000
    var encoder = try FrameEncoder(session: id, options)
    var segments: [Segment] = []
    for number in 0..<7 { segments += try encoder.append(Self.frame(number)) }
    // The other size ends the segment.
    segments += try encoder.append(Self.frame(7, width: 16_400))
    #expect(segments.map(\.frames.count) == [5, 2])
    for number in 8..<10 {
      do {
        _ = try encoder.append(Self.frame(number))
        Issue.record("frame \(number) was taken")
      } catch FrameEncoderError.ended(let reason) {
        #expect(reason.contains("avcodec_open2"))
      }
    }
    let rest = try encoder.finish()
    #expect(rest.isEmpty)
  }

  // MARK: stores

  /// A store that fails at one of its calls, before it stores anything.
  private final class FailingStore: SegmentStore {
    struct Outage: Error {}

    let content = MemoryStore()
    private let calls = Atomic(0)
    private let failing: ClosedRange<Int>

    init(failing: ClosedRange<Int>) { self.failing = failing }

    func publish(_ segments: [Segment], of session: SessionID) throws {
      if failing.contains(calls.add(1, ordering: .relaxed).newValue) { throw Outage() }
      content.publish(segments, of: session)
    }
  }

  @Test(arguments: 1...4) func batchIsPublishedOnceItsStoreWorksAgain(call: Int) throws {
    let sessions = try (1...4).map { try #require(SessionID("s\($0)")) }
    let batch = Fixture("jittered").path
    let expected = MemoryStore()
    for session in sessions { _ = try BatchEncoder(store: expected).publish(batch, session: session.description) }
    let store = FailingStore(failing: call...call + 1)
    let encoder = BatchEncoder(store: store)
    for (index, session) in sessions.enumerated() {
      if index + 1 == call {
        for _ in 0..<2 {
          #expect(throws: FailingStore.Outage.self) { try encoder.publish(batch, session: session.description) }
          #expect(store.content.segments(of: session).isEmpty)
        }
      }
      let receipt = try encoder.publish(batch, session: session.description)[0]
      #expect(!receipt.duplicate && receipt.segments == expected.segments(of: session).count)
    }
    for session in sessions {
      let (segments, wanted) = (store.content.segments(of: session), expected.segments(of: session))
      #expect(!segments.isEmpty && segments.map(\.video) == wanted.map(\.video))
      #expect(segments.map(\.manifest) == wanted.map(\.manifest))
    }
  }
}
