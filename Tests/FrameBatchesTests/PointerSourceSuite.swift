@testable import FrameBatches

/// A suite that reads pointer events.
protocol PointerSourceSuite {}

extension PointerSourceSuite {
  static var start: Int64 { RRWebTests.start }

  static func events(of batch: Batch) -> [String] {
    batch.pointers.events.map { "\($0.timeMs - start) \($0.kind) \($0.pointer) \($0.x) \($0.y)" }
  }
}
