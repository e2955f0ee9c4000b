import Testing

@testable import Encoding
@testable import FileSystem
@testable import SegmentEncoder
@testable import WorkQueues

@Suite struct MissingLibraryTests {
  /// The machine's fault, and no batch's: it is owed until the library is there.
  @Test func aBatchWaitsForALibraryThatIsMissing() {
    guard
      case .retry = Disposition(
        of: MissingLibrary(name: "libavformat", reason: "no such file", package: nil), batch: "batch")
    else {
      Issue.record("a batch would go to quarantine")
      return
    }
  }

  @Test func filmReaderIsAvailable() throws { try FormatLibrary.load() }
}
