import Encoding
import FileSystem
import FrameBatches
import SegmentEncoder
import Sessions

/// A folder of finished segments in the place of a session.
enum SegmentsFolder {
  /// Calls `body` with a published session. Finished segments are published in a private directory first, which is removed at the end.
  ///
  /// - Throws: exit status 65 after `body` if videos were refused.
  static func withSession(
    _ path: String, _ sandbox: SandboxOptions, _ decoders: DecoderForkServer?, _ body: (String) throws -> Void
  ) throws {
    guard FinishedSegmentsFormat.mayBe(path), !SessionDirectory.isSession(path) else { return try body(path) }
    var options = BatchEncoder.Options()
    options.limits = .ofFilms
    options.limits.decodeSeconds = sandbox.maxDecode
    options.limits.followsLinks = true
    options.decoders = decoders
    // The next command removes what a killed one has left.
    let temporary = try Staging.temporary(for: WorkerID())
    defer { temporary.remove() }
    let scratch = Staging.Scratch(in: temporary)
    defer { scratch.remove() }
    let staging = try Staging(output: scratch.path, worker: WorkerID())
    defer { staging.remove() }
    let encoder = BatchEncoder(options, staging: staging, index: SessionViews())
    let name = BatchReader.name(of: path).prefix { $0 != "@" }
    let batch = try encoder.read(path, session: SessionID(String(name))?.description ?? "segments")
    guard batch.isFinished else { return try body(path) }
    let signals = try TerminationSignals()
    let receipts = try encoder.publish(batch, cancellation: Cancellation { signals.wait(ms: 0) })
    _ = encoder.store.flushPending(all: true)
    let refused = receipts.flatMap(\.refused)
    for refused in refused { say("\(path): refused \(refused.source): \(refused.reason)") }
    for warning in receipts.flatMap(\.warnings) { say("\(path): \(warning)") }
    say("\(path): no session, but finished segments: took them as encode does")
    try body("\(scratch.path)/\(receipts[0].session)")
    if refused.contains(where: { !$0.isCopy }) { throw ExitStatus.badBatch }
  }
}
