import Testing

@testable import Encoding
@testable import FileSystem
@testable import SegmentEncoder
@testable import WorkQueues

@Suite struct MissingLibraryTests {
  /// A missing library is a fault of the machine. The batch stays queued until the library is installed.
  @Test func aBatchWaitsForALibraryThatIsMissing() {
    guard
      case .retry = Disposition(
        of: Failure.missingLibrary("libavformat", "no such file", package: nil), batch: "batch")
    else {
      Issue.record("the worker would quarantine the batch")
      return
    }
  }

  @Test func filmReaderIsAvailable() throws { try FormatLibrary.load() }
}
