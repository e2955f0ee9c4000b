import FrameBatches
import Glibc
import Logging
import Synchronization
import TestSupport
import Testing
import WorkQueues

@testable import Ingesting

/// A file that keeps no extended attributes loses the trace of its request.
@Suite struct LostTraceTests {
  private final class Lines: Sendable { let all = Mutex<[String]>([]) }

  private struct Handler: LogHandler {
    let lines: Lines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.debug

    subscript(metadataKey key: String) -> Logger.MetadataValue? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      lines.all.withLock { $0.append("\(event.level) \(event.message) \(event.metadata?["reason"] ?? "")") }
    }
  }

  @Test func deviceKeepsNoTrace() throws {
    let step = try #require(TraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
    let device = open("/dev/null", O_RDWR | O_CLOEXEC)
    defer { close(device) }
    #expect(!KeptTrace.keep(step, with: device) && KeptTrace.of("/dev/null") == nil)
  }

  @Test func lossIsLoggedOnce() throws {
    let (scratch, lines) = (try ScratchDirectory(), Lines())
    let intake = try SpoolIntake(Spool(creating: scratch.path("spool")))
    #expect(intake.keepsTracesInFiles)
    let logger = Logger(label: "ingest") { _ in Handler(lines: lines) }
    let context = IngestContext(intake, IngestSettings(), logger: logger)
    for name in ["a", "b"] { context.noteLostTrace(in: "/spool/tmp/\(name)") }
    let reason = "the file system of /spool/tmp/a keeps no extended attributes"
    #expect(lines.all.withLock { $0 } == ["notice ingest.untraced \(reason)"])
  }
}
