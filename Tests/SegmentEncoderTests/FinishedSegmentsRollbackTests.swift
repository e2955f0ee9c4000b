import Encoding
import FileSystem
import Foundation
import FrameBatches
import Sessions
import TestSupport
import Testing

@testable import SegmentEncoder

/// A batch of finished segments that has killed workers.
@Suite struct FinishedSegmentsRollbackTests {
  /// Whole videos stay published; one that a dead worker published in part goes.
  @Test func partOfAVideoIsRolledBack() throws {
    let scratch = try ScratchDirectory()
    let folder = try SegmentFolder(in: scratch)
    try folder.video("\(SegmentFolder.startMs).mp4", as: .ios, frames: 5)
    try folder.video("\(SegmentFolder.startMs + 60_000).mp4", as: .ios, frames: 13)
    let staging = try Staging(output: scratch.path("out"), worker: WorkerID())
    defer { staging.remove() }
    let encoder = BatchEncoder(BatchEncoder.Options(), staging: staging, index: SessionViews())
    let batch = try encoder.read(folder.path)
    #expect(try encoder.publish(batch, cancellation: .never).map(\.segments) == [4])
    let session = scratch.path("out/replay")
    let whole = try names(in: session).filter { $0.hasPrefix("segment-") }
    #expect(try encoder.rollBack(batch, cancellation: .never).isEmpty)
    #expect(try names(in: session).filter { $0.hasPrefix("segment-") } == whole)
    try FileManager.default.removeItem(atPath: "\(session)/\(try #require(whole.last { $0.hasSuffix(".json") }))")
    #expect(try encoder.rollBack(batch, cancellation: .never).isEmpty)
    #expect(try names(in: session).filter { $0.hasPrefix("segment-") } == Array(whole.prefix(2)))
    #expect(try encoder.publish(batch, cancellation: .never).map(\.segments) == [4])
    #expect(try names(in: session).filter { $0.hasPrefix("segment-") } == whole)
  }
}
