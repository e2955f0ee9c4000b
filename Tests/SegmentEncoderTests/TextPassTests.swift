import FileSystem
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import SegmentEncoder
@testable import Sessions

/// Words are read beside the batches of a worker.
@Suite(.enabled(if: Tool.readsText, "tesseract is not installed: scripts/setup test"))
struct TextPassTests {
  @Test func wordsWaitForFreeSpace() throws {
    let package = try GrowingPackage()
    try package.publish(0..<15, SessionViews())
    let engine = try TextEngine(language: "eng", searchPath: "/usr/bin:/bin", isConfined: true, cpuSeconds: 60)
    let answers = Mutex([99])
    var freeSpace = FreeSpace(minimum: 100)
    freeSpace.freeBytes = { _ in answers.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] } }
    let staging = try package.staging()
    defer { staging.remove() }
    let passes = TextPasses(
      engine, of: DirectoryStore(staging: staging, index: SessionViews()), decoders: nil, freeSpace,
      shutdown: try ShutdownState(), logger: Logger(label: "test"))
    func texts() throws -> Int {
      try names(in: package.output + "/walk").count { $0.hasSuffix(".text.json") }
    }
    passes.add(try package.session, fromMs: 0)
    passes.finish(all: true)
    #expect(try texts() == 0)
    // The disk fills after the first of three segments.
    answers.withLock { $0 = [100, 100, 99] }
    passes.finish(all: true)
    #expect(try texts() == 1)
    answers.withLock { $0 = [100] }
    passes.finish(all: true)
    #expect(try texts() == 3)
  }
}
