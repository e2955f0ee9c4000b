import ArgumentParser
import Batching
import FileSystem
import FrameBatches
import JSON
import Remote
import SegmentEncoder
import Sessions
import WorkQueues

struct EndCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "end",
    abstract: "End sessions: no more pictures are expected.",
    usage: """
      encoder-worker end <session> ... --spool <dir> [<options>]
      encoder-worker end <session> ... --output <dir> [<options>]
      encoder-worker end <session> ... --store <url> [<options>]
      """,
    discussion: """
      A session that has ended is complete: its playlists have an end, session.json says "complete": true, and the event session.ended is sent once. With --output alone that happens at once. With --spool or --store a running worker does it, after the batches that were handed in before. A batch that comes later is published, and does not reopen the session.
      """)

  static let page = HelpPage(
    example: "end 9f0c --spool spool", required: [["spool"], ["output"], ["store"]], common: ["json"])

  @OptionGroup var sessions: SessionArguments

  @Option(
    help: .setting(SpoolOptions.spoolHelp, valueName: "dir", place: .spool),
    completion: .directory)
  var spool: String?

  @Option(
    name: .shortAndLong, help: .setting("The directory for sessions.", default: "SPOOL/output", valueName: "dir"),
    completion: .directory)
  var output: String?

  @Option(
    help: .setting(
      RemoteOptions.storeHelp, valueName: "url", example: "s3://bucket",
      place: .store),
    transform: S3Location.init(_:))
  var store: S3Location?

  @OptionGroup var access: StoreAccess
  @OptionGroup var results: ResultOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws {
    if output == nil && spool == nil && store == nil { throw ValidationError("--spool DIR or --output DIR is missing") }
    if store != nil && (output != nil || spool != nil) {
      throw ValidationError("--store, or --spool and --output: one or the other")
    }
  }

  func execute() throws {
    let ids = sessions.ids
    if let store {
      let objects = try S3Client(store, access.settings())
      let staging = try Staging.temporary(for: WorkerID())
      defer { staging.remove() }
      let owed = try ObjectBatchRepository(objects, name: "\(store)").owed(limit: EndRequest.maximumAwaited)
      try request(
        ids, in: ObjectStore(objects, name: "\(store)", staging: staging), at: store.name(of: "output"),
        after: owed)
      return
    }
    let spool = try spool.map { try Spool(opening: $0) }
    let output = output ?? spool?.defaultOutput ?? ""
    try SessionDirectory.requireOutside(output)
    // The first batch may not be published yet.
    if let spool, self.output == nil { try DurableFile.makeDirectories(spool.defaultOutput) }
    guard DurableFile.isReachableDirectory(output) else {
      throw BadTarget(path: output, cause: "no directory", advice: "name the directory where sessions go")
    }
    let staging = try Staging(output: output, worker: WorkerID())
    defer { staging.remove() }
    let store = DirectoryStore(staging: staging, index: SessionViews())
    if let spool {
      // Before the batches are counted: those of pictures that wait may be made here.
      let closing = try ids.filter(SessionClosing(spool).request)
      try request(
        ids, in: store, at: staging.output, after: spool.owed(limit: EndRequest.maximumAwaited), closing: Set(closing))
    } else {
      try end(ids, in: store)
    }
  }

  /// Asks the workers to end sessions.
  ///
  /// - Parameter closing: sessions of which pictures are in no batch yet.
  private func request(
    _ ids: [SessionID], in store: some EndingStore, at place: String, after owed: [String], closing: Set<SessionID> = []
  ) throws {
    for id in ids {
      let request = EndRequest(id, .request, awaitsAll: true)
      switch try store.requestEnd(request) {
      case .alreadyEnded(let end): tellEnded(end, in: place)
      case .requested:
        let batches = owed.isEmpty ? "" : " after \(count(owed.count, "batch", "batches"))"
        results.tell(
          "\(id): the next worker ends it\(closing.contains(id) ? " after the pictures that wait" : batches)",
          json: Self.json(id, "requested", ["batches": .number(owed.count)]))
      }
    }
  }

  /// Ends sessions at once. The next worker that sends events announces their ends.
  private func end(_ ids: [SessionID], in store: DirectoryStore) throws {
    var unknown = 0
    for id in ids {
      if case .alreadyEnded(let end) = try store.requestEnd(EndRequest(id, .request)) {
        tellEnded(end, in: store.staging.output)
        continue
      }
      switch try store.end(id, .request, ifQuietForMs: nil, cancellation: .never.or(afterMs: 30_000)) {
      case .ended(let ended):
        results.tell(
          "\(id): it ends with \(count(ended.segments, "segment"))",
          json: Self.json(id, "ended", ["endMs": .number(ended.endMs), "segments": .number(ended.segments)]))
        results.tell("\(id): ended, in \(store.staging.output)/\(id)")
      case .unknown, .goesOn:
        if let held = try store.takeEndRequest(of: id) { try store.removeEndRequest(held) }
        unknown += 1
        let others = SessionAdvice.alike(id, in: store.staging.output).map { "; there is \($0)" } ?? ""
        say("encoder-worker: \(id): nothing of it is published in \(store.staging.output)\(others)", .error)
      }
    }
    if unknown > 0 { throw ExitStatus.badBatch }
  }

  private func tellEnded(_ end: SessionEnd, in place: String) {
    results.tell(
      "\(end.session): it had ended at \(end.endedMs.dateText)",
      json: Self.json(end.session, "ended", ["endedMs": .number(end.endedMs)]))
    results.tell("\(end.session): ended, in \(place)/\(end.session)")
  }

  private static func json(_ id: SessionID, _ state: String, _ facts: [String: JSONValue]) -> String {
    JSONValue.object(["session": .string(id.description), "state": .string(state)]).setting(facts).line
  }
}
