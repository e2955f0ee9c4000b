import ArgumentParser
import Deleting
import FileSystem
import FrameBatches
import JSON
import Remote
import SegmentEncoder
import Sessions
import WorkQueues

struct DeleteCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete",
    abstract: "Remove sessions for good, and refuse their later batches.",
    usage: """
      encoder-worker delete <session> ... --spool <dir> [<options>]
      encoder-worker delete <session> ... --output <dir> [<options>]
      encoder-worker delete <session> ... --store <url> [<options>]
      """,
    discussion: """
      Writes a tombstone for each session (id, time, reason), then removes its video, manifests, views and thumbnails, and its batches in the spool or store: waiting, kept and quarantined. From then on workers refuse batches of it. A second run finishes an interrupted one. Prints what was removed, the batches that workers still hold, and those that cannot be read. With --json it prints an object for each session, for an audit log. With --dry-run it prints what would be removed, and changes nothing.
      """)

  static let page = HelpPage(
    example: "delete 9f0c --spool spool", required: [["spool"], ["output"], ["store"]],
    common: ["reason", "dry-run", "undelete", "json"])

  @OptionGroup var sessions: SessionArguments

  @Option(
    name: .shortAndLong, help: .setting("The directory for sessions.", default: "SPOOL/output", valueName: "dir"),
    completion: .directory)
  var output: String?

  @Option(
    help: .setting(SpoolOptions.spoolHelp, valueName: "dir", place: .spool),
    completion: .directory)
  var spool: String?

  @Option(
    help: .setting(
      RemoteOptions.storeHelp, valueName: "url", example: "s3://bucket",
      place: .store),
    transform: S3Location.init(_:))
  var store: S3Location?

  @OptionGroup var access: StoreAccess

  @Option(
    help: .call(
      IngestOptions.stateHelp, valueName: "dir",
      example: "/var/lib/encoder-worker"),
    completion: .directory)
  var ingestState: String?

  @Option(help: ArgumentHelp("The reason, for the tombstone and the audit log.", valueName: "text"))
  var reason: String?

  @OptionGroup var names: SessionNameOption

  @Flag(help: "Show what would be done, and do nothing.")
  var dryRun = false

  @Flag(help: "Remove the tombstones only: later batches are published again.")
  var undelete = false

  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws {
    if output == nil && spool == nil && store == nil {
      throw ValidationError("--output DIR, --spool DIR or --store URL is missing")
    }
    if store != nil && (output != nil || spool != nil) {
      throw ValidationError("--store, or --output and --spool: one or the other")
    }
    if store == nil && ingestState != nil { throw ValidationError("--ingest-state works with --store") }
    if undelete && reason != nil { throw ValidationError("--reason is for a deletion, not for --undelete") }
    if undelete && dryRun { throw ValidationError("--dry-run is for a deletion, not for --undelete") }
    if let reason, reason.utf8.count > Tombstone.maximumReasonBytes {
      throw ValidationError("--reason has at most \(Tombstone.maximumReasonBytes) bytes")
    }
  }

  func execute() throws {
    // Start the sandbox before the process has threads.
    let readsBatches = !undelete && (spool != nil || store != nil)
    let decoders = try readsBatches ? sandbox.decoders(Limits()) : nil
    let stop = SignalledStop(try TerminationSignals())
    let place = try place(decoders, stop)
    let ids = sessions.ids
    if undelete {
      for id in ids { try undelete(id, at: place) }
    } else {
      try delete(ids, at: place)
    }
  }

  private func undelete(_ id: SessionID, at place: any DeletionPlace) throws {
    let wasDeleted = try place.removeTombstone(of: id)
    results.tell(
      wasDeleted ? "\(id): later batches of it are published again" : "\(id): it was not deleted",
      json: JSONValue.object(["session": .string(id.description), "undeleted": .bool(wasDeleted)]).line)
    if let other = place.uploadsTo {
      say("in \(other) it stays deleted: run delete --undelete \(id) --store \(other), too")
    }
  }

  private func delete(_ ids: [SessionID], at place: any DeletionPlace) throws {
    let nowMs = WallClock.nowMs
    let deletion = place.delete(
      ids.map { Tombstone($0, deletedAtMs: nowMs, reason: reason ?? "") }, isDryRun: dryRun)
    // Also after a failure: this is the only record of the removal.
    for id in ids {
      guard let report = deletion.reports[id] else { continue }
      let removed =
        report.files.files == 0
        ? "nothing of it \(dryRun ? "is" : "was") there"
        : "\(count(report.session.segments, "segment")) and \(count(report.batches.count, "batch", "batches")) "
          + "\(dryRun ? "would be removed" : "removed"), \(size(report.files.bytes))"
      results.tell("\(id): \(removed)", json: report.json(deletion.remains))
      if report.files.files == 0, store == nil, let others = SessionAdvice.alike(id, in: place.name) {
        say("\(place.name) has \(others): to delete them, name them")
      }
    }
    for path in deletion.remains.unidentified {
      if let remark = deletion.remains.remarks[path] { say("\(path): \(remark)") }
    }
    if let note = Self.note(on: deletion.remains.namedOtherwise) { say(note) }
    if let note = Self.note(onAlike: deletion.remains.alike) { say(note) }
    let advice = dryRun ? "a deletion waits for that" : "run this again when it is done"
    for path in deletion.remains.held { say("\(path): a worker holds it; \(advice)") }
    if spool == nil && store == nil { say("batches were not looked for: name their spool with --spool") }
    for id in ids where deletion.reports[id] != nil && !dryRun {
      results.tell("\(id): later batches of it are refused in \(place.name)")
    }
    if let other = place.uploadsTo, !dryRun { say("a worker deletes it in \(other), too; see status") }
    for failure in deletion.failures { say("encoder-worker: \(failure); run it again", .error) }
    try deletion.end.get()
    if let failure = deletion.failures.first { throw ExitStatus.afterRetry(of: failure) }
    if !dryRun && !deletion.remains.held.isEmpty { throw ExitStatus.temporaryFailure }
  }

  /// Returns a line on unreadable batches whose names say other sessions; nil if there are none.
  private static func note(on batches: [String: SessionID]) -> String? {
    guard !batches.isEmpty else { return nil }
    return
      "\(count(batches.count, "batch", "batches")) that cannot be read, of other sessions by name: \(shown(batches)); "
      + "remove one yourself if its name is wrong"
  }

  /// Returns a line on batches whose names have the ID of a deleted session in them; nil if there are none.
  private static func note(onAlike batches: [String: SessionID]) -> String? {
    guard !batches.isEmpty else { return nil }
    return
      "left, because names without --session-from say other sessions: \(shown(batches)); "
      + "if the workers have --session-from, run this again with it"
  }

  private static func shown(_ batches: [String: SessionID]) -> String {
    let first = batches.sorted { $0.key < $1.key }.prefix(3).map { "\($0.key) (\($0.value))" }
    return first.joined(separator: ", ") + (batches.count > 3 ? ", and \(batches.count - 3) more" : "")
  }

  private func place(_ decoders: DecoderForkServer?, _ stop: SignalledStop) throws -> any DeletionPlace {
    var options = InputOptions()
    options.sessionFrom = try names.pattern()
    let identifier = BatchIdentifier(
      options: options, wanted: sessions.ids, unpacker: decoders,
      cancellation: Cancellation({ stop.isRequested }))
    if let store {
      let objects = try S3Client(store, access.settings())
      let id = WorkerID()
      // This writes an object.
      if !dryRun { try objects.requireConditions(tryingAt: "incoming/.\(id)", name: "\(store)") }
      return StoreDeletionPlace(
        objects, name: "\(store)", staging: try Staging.temporary(for: id),
        state: try ingestState.map { try Spool(opening: $0) }, identifier)
    }
    let spool = try spool.map { try Spool(opening: $0) }
    let output = output ?? spool?.defaultOutput ?? ""
    try SessionDirectory.requireOutside(output)
    let cause =
      !DurableFile.isReachableDirectory(output)
      ? "no directory" : spool.map { !$0.allows(output: output) } ?? false ? "batches lie there" : nil
    if let cause { throw BadTarget(path: output, cause: cause, advice: "name the directory where sessions go") }
    return DirectoryDeletionPlace(output: DurableFile.resolved(output), spool: spool, identifier)
  }
}
