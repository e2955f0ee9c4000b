import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// Batches with several sessions.
@Suite struct BatchSessionsTests {
  private let scratch: ScratchDirectory
  private let output: OutputDirectory

  init() throws {
    scratch = try ScratchDirectory()
    output = try OutputDirectory(scratch.path("output"))
  }

  /// Writes a batch with one session for each monitor. Each session has one frame for each image.
  private func batch(_ monitors: [String: [[UInt8]]]) throws -> String {
    let path = try scratch.directory("screens-\(UUID().uuidString)")
    for (monitor, images) in monitors {
      for (index, image) in images.enumerated() {
        try scratch.file("\(lastComponent(of: path))/\(1_767_859_512_340 + 1_000 * index)_m\(monitor).jpg", image)
      }
    }
    return path
  }

  private static func images(_ count: Int) throws -> [[UInt8]] {
    try (0..<count).map { try Fixture("exact-1fps").bytes(String(format: "%04d.jpg", $0)) }
  }

  private func published() -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: output.path)) ?? []).filter { !$0.hasPrefix(".") }.sorted()
  }

  @Test func sessionOfSeveralIsPublishedLikeASingleSession() throws {
    let images = try Self.images(5)
    let path = try batch(["1": images, "2": Array(images.prefix(3))])
    let encoder = BatchEncoder(output: output)
    let receipts = try encoder.publish(path, session: "desk")
    #expect(receipts.map(\.session.description) == ["desk.m1", "desk.m2"])
    #expect(receipts.map(\.frames) == [5, 3])
    #expect(receipts.allSatisfy { $0.refused.isEmpty && !$0.duplicate })
    #expect(try encoder.publish(path, session: "desk").allSatisfy(\.duplicate))

    // A plain batch with the same frames has the same bytes.
    let plain = try scratch.directory("plain")
    for (index, image) in images.enumerated() {
      try scratch.file("plain/\(1_767_859_512_340 + 1_000 * index).jpg", image)
    }
    _ = try encoder.publish(plain, session: "alone")
    func frames(_ session: String) throws -> [PublishedSegment.Frame] {
      let session = try #require(SessionID(session))
      return try SessionDirectory(output: output.path, session: session).segment(1_767_859_512_340).frames
    }
    let (one, alone) = (try frames("desk.m1"), try frames("alone"))
    #expect(one.map(\.timeMs) == alone.map(\.timeMs) && one.map(\.holdMs) == alone.map(\.holdMs))
  }

  @Test func refusedSessionIsInTheReceiptAndOthersArePublished() throws {
    let path = try batch(["1": Self.images(1), "2": [Array("no image".utf8)], "a b": Self.images(1)])
    let receipts = try BatchEncoder(output: output).publish(path, session: "desk")
    #expect(receipts.map(\.session.description) == ["desk.m1"])
    #expect(receipts[0].refused.map(\.source) == ["session desk.ma b", "session desk.m2"])
    #expect(receipts[0].refused[1].reason.contains("can be decoded"))
    #expect(published() == ["desk.m1"])
    let (inspected, refused, _) = try InspectedBatch.sessions(of: path, BatchEncoder.Options())
    #expect(inspected.count == 1 && refused.count == 2)
  }

  @Test func batchWithoutPublishableSessionIsRefused() throws {
    let path = try batch(["1": [Array("no image".utf8)], "2": [Array("nor this".utf8)]])
    #expect(throws: BadBatch.self) { try BatchEncoder(output: output).publish(path, session: "desk") }
    #expect(published().isEmpty)
  }

  @Test func aBatchOfTooManySessionsIsRefused() throws {
    let path = try scratch.directory("many")
    for camera in 0...1_000 { try scratch.file("many/preview_c\(camera)-1767859512.webp", [0]) }
    let error = #expect(throws: BadBatch.self) { try BatchSessions(reading: path) }
    #expect(error?.cause == "more than 1000 sessions")
  }

  @Test func sessionThatOverlapsPublishedTimeIsRefusedAndOthersArePublished() throws {
    let images = try Self.images(5)
    let encoder = BatchEncoder(output: output)
    _ = try encoder.publish(batch(["1": Array(images[1..<3])]), session: "desk")
    let receipts = try encoder.publish(batch(["1": images, "2": images]), session: "desk")
    #expect(receipts.map(\.session.description) == ["desk.m2"])
    #expect(receipts[0].refused.map(\.source) == ["session desk.m1"])
    #expect(receipts[0].refused[0].reason.contains("overlaps"))
  }

  @Test func afterAFailureInTheSecondSessionARetryFindsTheFirstPublished() throws {
    let path = try batch(["1": Self.images(2), "2": Self.images(2)])
    let encoder = BatchEncoder(output: output)
    var calls = 0
    // The encoder is cancelled while it encodes the second session.
    #expect(throws: Cancelled.self) {
      try encoder.publish(path, session: "desk") {
        calls += 1
        return FileManager.default.fileExists(
          atPath: output.path + "/desk.m1/" + SegmentName.manifest(1_767_859_512_340))
      }
    }
    #expect(calls > 0 && published() == ["desk.m1"])
    let receipts = try encoder.publish(path, session: "desk")
    #expect(receipts.map(\.duplicate) == [true, false])
  }

  @Test func rollbackKeepsCompletelyPublishedSessions() throws {
    let path = try batch(["1": Self.images(2), "2": Self.images(2)])
    let encoder = BatchEncoder(output: output)
    let batch = try encoder.read(path, session: "desk")
    #expect(try encoder.rollBack(batch, cancellation: .never).isEmpty)
    _ = try encoder.publish(batch, cancellation: .never)
    #expect(try encoder.rollBack(batch, cancellation: .never).map(\.duplicate) == [true, true])
  }
}
