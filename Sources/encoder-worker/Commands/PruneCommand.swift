import ArgumentParser
import FileSystem
import FrameBatches
import Glibc
import JSON
import Remote
import SegmentEncoder
import Sessions
import WorkQueues

struct PruneCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "prune",
    abstract: "Remove leftovers of dead workers, and what is too old.",
    usage: """
      encoder-worker prune --spool <dir> [<options>]
      encoder-worker prune --queue <url> --store <url> [<options>]
      """,
    discussion: """
      Removes directories of dead workers, drafts, videos without a manifest and reasons without a batch. With --done, --quarantine or --sessions, it also removes batches and sessions that are older than an age: 30m, 12h, 7d, 4w. With --retain or --max-bytes, it removes the first segments of sessions that go on. A session without a publication for that age goes as a whole; with --max-bytes, after a day. A session that has not ended is ended first, and goes with the next run, after a worker has announced that. It never removes batches that wait or are claimed. It may run beside workers, and first watches workers of other hosts for a lease.

      With --compact and a store, it writes old sessions, and the old part of others, again as few objects. No picture is coded again. Links to replaced objects work for a week; a later run, or run --compact, removes them.

      With --queue and --store, or --store alone, it does the same with done/, quarantine/ and the sessions of an object store. Ages are those of the store's own clock. Nothing else is removed there, but for what an interrupted removal has left.
      """)

  static let page = HelpPage(
    example: "prune --spool spool --done 7d --dry-run", required: [["spool"], ["queue", "store"]],
    common: ["done", "quarantine", "sessions", "retain", "max-bytes", "dry-run", "json"])

  @OptionGroup var place: BatchPlaceOptions

  @Option(
    name: .shortAndLong, help: .setting("The directory for sessions.", default: "SPOOL/output", valueName: "dir"),
    completion: .directory)
  var output: String?

  @Option(
    help: ArgumentHelp("Remove kept batches that are older than this: 12h, 7d.", valueName: "age"),
    transform: Age.init)
  var done: Age?

  @Option(
    help: ArgumentHelp("Remove quarantined batches that are older than this.", valueName: "age"),
    transform: Age.init)
  var quarantine: Age?

  @Option(
    help: ArgumentHelp("Remove sessions whose last publication is older than this.", valueName: "age"),
    transform: Age.init)
  var sessions: Age?

  @Option(
    help: .call("Remove segments that were published longer ago than this.", valueName: "age", example: "7d"),
    transform: Age.init)
  var retain: Age?

  @OptionGroup var videos: VideoBytesOption

  @Option(
    help: .call(
      "In a store, rewrite sessions that were published longer ago than this as packs of ten minutes.",
      valueName: "age", example: "1d"),
    transform: Age.init)
  var compact: Age?

  @Flag(help: "Refuse later batches of the sessions that --sessions removes, as delete does.")
  var tombstones = false

  @Flag(help: "Show what would be done, and do nothing.")
  var dryRun = false

  @OptionGroup var results: ResultOptions

  @Option(
    help: .setting(
      "Seconds without a heartbeat after which a worker of another host counts as dead.", valueName: "seconds"))
  var lease = Lease.defaultValue

  @OptionGroup var settings: SettingsOption

  func validate() throws {
    try place.requireOne()
    if place.isOfStore { try CallOptions.refuse("--output", "-o", "--lease", without: "--spool") }
    if !place.isOfStore, compact != nil {
      throw ValidationError("--compact is for sessions in a store: use --store URL instead of --spool")
    }
    if tombstones && sessions == nil { throw ValidationError("--tombstones works with --sessions AGE") }
    try Lease.validate(lease)
  }

  func execute() throws {
    let (pruned, skipped, ending, failures, compaction) = try place.isOfStore ? pruneStore() : pruneSpool()
    for item in pruned {
      results.print(json: item.json, text: "\(item.path): \(item.what), \(size(item.bytes))".oneLine)
    }
    for path in skipped { say("\(path): left, another process holds its lock") }
    let end = dryRun ? "would end" : place.isOfStore ? "a worker ends it" : "has ended"
    for path in ending { say("\(path): \(end); prune removes it after a worker has announced that") }
    if let compaction { report(compaction) }
    for failure in failures { say("encoder-worker: \(failure)", .error) }
    let bytes = pruned.reduce(0) { $0 + $1.bytes }
    let verb = dryRun ? "would be removed" : "removed"
    say(pruned.isEmpty ? "nothing to remove" : "\(pruned.count) \(verb), \(size(bytes))")
    if let failure = failures.first { throw ExitStatus.afterRetry(of: failure) }
  }

  private func report(_ compaction: CompactionReport) {
    for session in compaction.sessions {
      let path = place.store?.name(of: "output/\(session.session)") ?? ""
      let (segments, objects) = (count(session.segments, "segment"), count(session.objects, "object"))
      let verb = dryRun ? "would become" : "became"
      results.print(
        json: session.json(at: path),
        text: "\(path): \(segments) in \(objects) \(verb) \(count(session.packs, "pack"))".oneLine)
    }
    if compaction.sessions.isEmpty { say("nothing to compact") }
    if compaction.removed > 0 { say("\(count(compaction.removed, "replaced object")) of earlier runs removed") }
  }

  private var retention: Retention {
    var retention = Retention(nowMs: WallClock.nowMs)
    retention.keptMs = done?.ms
    retention.quarantinedMs = quarantine?.ms
    retention.sessionsMs = sessions?.ms
    retention.compactedMs = compact?.ms
    retention.segments = RetentionLimits(ageMs: retain?.ms, maximumBytes: videos.maxBytes)
    return retention
  }

  private var tombstoneReason: String? { tombstones ? "older than the maximum age of prune" : nil }

  private func pruneStore() throws -> Pruning.Result {
    guard let store = place.store else { throw MissingOption.error("--store <url>", RemoteOptions.storeHelp) }
    let objects = try S3Client(store, place.access.settings())
    let id = WorkerID()
    // This writes an object.
    if !dryRun { try objects.requireConditions(tryingAt: "incoming/.\(id)", name: "\(store)") }
    let staging = try Staging.temporary(for: id)
    defer { staging.remove() }
    return StoredPruning(
      objects, name: "\(store)", staging: staging, retention: retention, tombstoneReason: tombstoneReason,
      isDryRun: dryRun
    ).run()
  }

  private func pruneSpool() throws -> Pruning.Result {
    let spool = try Spool(opening: place.spool ?? "")
    if let output {
      let cause =
        !DurableFile.isReachableDirectory(output)
        ? "no directory" : !spool.allows(output: output) ? "batches lie there" : nil
      if let cause { throw BadTarget(path: output, cause: cause, advice: "name the directory where sessions go") }
    }
    let pruning = Pruning(
      spool: spool, output: output, retention: retention, tombstoneReason: tombstoneReason, isDryRun: dryRun)
    let monitor = HeartbeatMonitor(lease: lease)
    let watched = try pruning.watch(with: monitor)
    if watched > 0 {
      say("watching \(count(watched, "directory", "directories")) of other hosts' workers for \(lease) s")
      sleep(UInt32(lease))
    }
    return pruning.run(with: monitor)
  }
}

extension CompactionReport.Compacted {
  /// One line of JSON.
  fileprivate func json(at path: String) -> String {
    JSONValue.object([
      "path": .string(path), "what": .string("a compacted session"), "segments": .number(segments),
      "bytes": .number(bytes), "objects": .number(objects), "packs": .number(packs),
    ]).line
  }
}
