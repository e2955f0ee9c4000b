import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import SegmentEncoder
@testable import Sessions

@Suite struct StagedSegmentTests {
  /// Readers refuse a segment of this size, so the worker quarantines the batch.
  @Test func segmentAboveTheReadersLimitIsQuarantined() throws {
    let scratch = try ScratchDirectory()
    let staging = try Staging(output: scratch.path("output"), worker: WorkerID())
    let segment = EncodedSegment(
      holds: [], bytes: [UInt8](repeating: 0, count: SegmentManifest.maximumVideoBytes + 1), codec: "", codedWidth: 0,
      codedHeight: 0, samples: 0)
    let error = try #require(throws: SegmentTooLarge.self) {
      try StagedSegment(segment, in: staging, refused: [], notes: [:])
    }
    guard case .quarantine(let reason) = Disposition(of: error, batch: "a") else {
      Issue.record("\(Disposition(of: error, batch: "a"))")
      return
    }
    #expect(reason.cause == "a segment of 134217729 bytes, more than the limit of 134217728")
  }
}
