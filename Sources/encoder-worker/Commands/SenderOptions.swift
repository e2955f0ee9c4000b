import ArgumentParser
import FileSystem
import Glibc
import Remote
import SegmentEncoder
import WorkQueues

/// The way of batches to a worker elsewhere.
struct SenderOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Hand the batches to the --ingest of the worker at this address.", valueName: "url"))
  var to: HTTPAddress?

  @Option(
    help: .setting(
      "With --to: file with the token that the worker's --ingest-tokens has. Others may not read it.",
      valueName: "file"),
    completion: .file())
  var tokenFile: String?

  func validate() throws {
    try to?.validate("--to")
    if to == nil, tokenFile != nil { throw ValidationError("--token-file works with --to") }
  }

  /// - Parameter isOverdue: whether requests have to end.
  /// - Returns: nil without `--to`.
  func client(isOverdue: @escaping @Sendable () -> Bool = { false }) throws -> IngestClient? {
    try to.map {
      try IngestClient(
        $0, tokenFile: tokenFile, userAgent: "encoder-worker/\(ProgramVersion.text)", isOverdue: isOverdue)
    }
  }
}

/// Sends again what a worker cannot take yet, for some minutes.
struct PatientReceiver: BatchReceiver {
  private static let patienceS = 300

  let client: IngestClient

  func take(_ tar: [UInt8], as name: String) throws -> Bool {
    let untilMs = MonotonicClock.milliseconds() + 1_000 * Self.patienceS
    var failures = 0
    while true {
      do {
        return try client.take(tar, as: name)
      } catch let busy as NotTaken where busy.mayPass {
        failures += 1
        // An answer may name any number.
        let askedMs = 1_000 * min(busy.retryAfterS ?? 0, Self.patienceS)
        let pauseMs = max(askedMs, BackOff.pauseMs(failures: failures))
        guard MonotonicClock.milliseconds() + pauseMs < untilMs else { throw busy }
        if failures == 1 { say("encoder-worker: \(busy); trying again for \(Self.patienceS / 60) minutes", .warning) }
        usleep(UInt32(1_000 * pauseMs))
      }
    }
  }
}
