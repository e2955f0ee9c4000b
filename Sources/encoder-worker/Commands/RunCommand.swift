import ArgumentParser
import Batching
import CLinux
import Encoding
import FileSystem
import FrameBatches
import Glibc
import Ingesting
import Logging
import Remote
import SegmentEncoder
import Serving
import Sessions
import WorkQueues

struct RunCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Encode the batches of a spool, or of a queue and a store.",
    usage: """
      encoder-worker [run] --spool <dir> [<options>]
      encoder-worker [run] --queue <url> --store <url> [<options>]
      """,
    discussion: """
      Runs until it is stopped. Makes a missing spool. Producers rename batches into DIR/incoming. The worker encodes each batch into OUTPUT/SESSION and removes it. It moves a batch that cannot be encoded to DIR/quarantine, with the reason beside it. SIGTERM or SIGINT: the worker finishes its batches, or puts them back within 5 seconds. Several workers may share a spool.

      With --upload, each session goes into an object store when it has ended, as few objects, and is removed here. Until then it lies on this disk only.

      With --queue and --store, batch names come from a Redis stream or an SQS queue, and batches and sessions lie in an object store, in incoming/ and output/. If the queue loses names, run reconcile.
      """)

  static let page = HelpPage(
    example: "run --spool spool", required: [["spool"], ["queue", "store"]],
    common: [
      "output", "drain", "jobs", "quality", "end-after", "retain", "upload", "json", "notify", "ingest", "hls",
      "listen",
      "verbose",
    ])

  @OptionGroup var source: QueueOptions

  @Option(
    name: .shortAndLong, help: .setting("The directory for sessions.", default: "SPOOL/output", valueName: "dir"),
    completion: .directory)
  var output: String?

  @Flag(help: .setting("Encode everything that waits, then exit."))
  var drain = false

  @Flag(help: .setting("Keep published batches in done/ instead of removing them."))
  var keepBatches = false

  @Flag(help: .setting("Keep a live HLS playlist of each session in its hls/."))
  var hls = false

  @Flag(help: .setting("Keep preview thumbnails of each session in its thumbnails/."))
  var thumbnails = false

  @Option(
    help: .setting(
      "End a session when nothing of it was published for this many seconds. A later batch does not reopen it.",
      valueName: "seconds"))
  var endAfter: Int?

  @Flag(help: .setting("Rewrite ended sessions, and parts older than an hour, as packs of ten minutes; in a store."))
  var compact = false

  @OptionGroup var storeLayout: LayoutOption
  @OptionGroup var text: TextOptions
  @OptionGroup var events: EventOptions

  @Option(help: .setting("Timeout of a batch in seconds; then it counts as failed.", valueName: "seconds"))
  var maxTime = 3_600

  @OptionGroup var freeSpace: FreeSpaceOption

  @Option(
    help: .setting(
      "Seconds without a heartbeat after which a worker of another host counts as dead.",
      valueName: "seconds"))
  var lease = Lease.defaultValue

  @Option(
    help: .setting(
      "Serve /metrics, /healthz and /readyz on this address; a port alone means localhost.", valueName: "host:port"),
    transform: ListenAddress.init(_:))
  var listen: ListenAddress?

  @Option(
    help: .setting("Accept requests for this host name, too. May be given several times.", valueName: "name")
  )
  var host: [String] = []

  @OptionGroup var ingest: IngestOptions
  @OptionGroup var uploads: UploadOptions
  @OptionGroup var exports: ExportOptions
  @OptionGroup var retention: RetentionOptions
  @OptionGroup var notifications: NotificationOptions
  @OptionGroup var capture: CaptureArguments
  @OptionGroup var log: LogOptions
  @OptionGroup var settings: SettingsOption
  @OptionGroup var encoding: EncodingOptions
  @OptionGroup var segments: SegmentOptions

  @Option(
    help: .setting(
      "Print the time of each stage on standard error every so many minutes, as a line of JSON.", valueName: "minutes"))
  var profileEvery: Int?

  @Option(
    help: .setting(
      "Report a screen that has not changed for this many minutes, although its recorder goes on.",
      valueName: "minutes"))
  var frozen: Int?

  // The default command gets every word that is no command.
  @Argument(help: .hidden)
  var words: [String] = []

  func validate() throws {
    // A call that begins with a word means a command, and its options are of that one.
    let isCommand = words.first != nil && words.first == CommandLine.arguments.dropFirst().first
    if !isCommand, !words.isEmpty || source.isMissing { try requireKnownOptions() }
    if let word = words.first {
      let commands = EncoderWorker.commandNames
      if word.contains("://") {
        throw ValidationError("an address is the value of an option: --queue URL, --store URL")
      }
      if commands.contains(word) {
        throw ValidationError("'\(word)' has to be the first word, before all options")
      }
      let meant = nearest(word, among: commands).map { " (did you mean '\($0)'?)" } ?? ""
      throw ValidationError("unknown command '\(word)'\(meant); commands: \(commands.joined(separator: ", "))")
    }
    try require("--max-time", maxTime, in: 1...86_400 * 365, "seconds")
    if let endAfter { try require("--end-after", endAfter, in: 1...86_400 * 365, "seconds") }
    try require("--profile-every", profileEvery, in: 1...1_440, "minutes")
    try require("--frozen", frozen, in: 1...10_080, "minutes")
    if profileEvery != nil && encoding.profile {
      throw ValidationError("--profile prints at the end, --profile-every in between: one or the other")
    }
    try Lease.validate(lease)
    try source.requireOne()
    try source.remote.validate(lease: lease)
    if source.spool == nil && output != nil {
      throw ValidationError("--output works with --spool; with --queue, sessions go to the --store")
    }
    try storeLayout.validate(withStore: source.spool == nil)
    try uploads.validate(with: source, retention)
    guard source.spool == nil || !CallOptions.has("--compact") else {
      throw ValidationError("--compact is for sessions in a store: use --queue and --store instead of --spool")
    }
    if drain && ingest.ingest != nil { throw ValidationError("--ingest works without --drain") }
    if source.spool != nil && ingest.ingestState != nil {
      throw ValidationError("--ingest-state works with --queue and --store; a spool keeps pictures itself")
    }
    if source.spool != nil, let pattern = try capture.names.pattern(), pattern.folders > 0 {
      throw ValidationError(
        "--session-from: '\(pattern)' has folders, and batches of a spool lie in none; leave out all up to the last /"
      )
    }
  }

  /// The default command also gets options that no command has. The parser would blame the words after them.
  private func requireKnownOptions() throws {
    let command = try CommandSchema.program(EncoderWorker.self).find(["run"]).command
    let given = CommandLine.arguments.dropFirst().prefix { $0 != "--" }
    for word in given where word.hasPrefix("--") {
      let name = String(word.dropFirst(2).prefix { $0 != "=" })
      if command.option(name) != nil || ["help", "version"].contains(name) { continue }
      let meant = nearest(name, among: command.options.map(\.name)).map { " (did you mean '--\($0)'?)" }
      throw ValidationError("unknown option '--\(name)'\(meant ?? "; see encoder-worker --help")")
    }
  }

  func execute() throws {
    let logger = log.logger()
    let notifier = try notifications.notifier()
    let options = try profiled(
      encoding.encoder(
        capture.options(readsLists: false), segment: segments.segment,
        readsVideos: text.text || !exports.export.isEmpty))
    clinux_release_code()
    // Before any thread is started, and before the worker makes files: a failure leaves nothing to clean up.
    let ingestListener = try ingest.listener()
    let signals = try TerminationSignals()
    let shutdown = try ShutdownState()
    let (handover, restart) = (Handover.take(), WorkerRestart())
    // Bind the socket before the worker makes files: a failure leaves nothing to clean up.
    let socket = try listen.map { try ListeningSocket(at: $0) }
    if hls || thumbnails || text.text || !exports.export.isEmpty { try FormatLibrary.load() }
    let engine = try text.engine(encoding.sandbox)
    let id = WorkerID()
    let isNew = source.spool.map { !DurableFile.isReachableDirectory($0 + "/incoming") } ?? false
    let remote = try source.remote.connect(
      as: id, .worker(drains: drain), lease: lease, isOverdue: { shutdown.isOverdue })
    let (queue, store) = try open(remote, as: id, options, shutdown)
    // Pictures of sessions that are to end, and whose batcher has died since.
    do {
      if let spool = source.spool { try SessionClosing(Spool(creating: spool), limits: options.limits).resume() }
    } catch {
      // A full disk: the next start does it.
      logger.error("session.failed", metadata: ["error": "\(error)"])
    }
    if let spool = source.spool, isNew { say("made the spool \(spool); rename batches into \(spool)/incoming") }
    try Self.stop(shutdown, at: signals, reaping: handover != nil)
    let uploading = try uploads.passes(of: store, as: id, source.remote.access, shutdown, logger)
    defer { uploading?.staging.remove() }
    var reports = WorkerReports(to: logger)
    reports.counters = handover?.counters ?? WorkerCounters()
    (reports.write, reports.notifier) = (notifications.write, notifier)
    let rules = WorkerRules(
      keepsBatches: keepBatches, maxTimeS: maxTime, freeSpace: freeSpace.rule,
      endAfterMs: endAfter.map { 1_000 * Int64($0) }, frozenAfterMs: frozen.map { 60_000 * Int64($0) })
    let exporting = try exports.passes(options.decoders, shutdown)
    let worker = Worker(
      id, queue: queue, store: store, options: options, rules,
      texts: text.passes(engine, store, options, freeSpace.rule, shutdown, logger), uploads: uploading?.passes,
      exports: exporting, compaction: compaction(in: store, shutdown, logger),
      reports: reports)
    let loop = WorkerLoop(
      worker, threads: segments.threads, drains: drain, shutdown: shutdown,
      retention: passes(in: store, shutdown, worker.logger))
    let objects = remote?.objects ?? uploading?.objects
    let server = try socket.map { try serve(worker, loop, shutdown, objects, on: $0) }
    defer { withExtendedLifetime(server) {} }
    let target = remote.map { IngestListener.Target.remote($0, store.staging) } ?? .spool(source.spool ?? "")
    let ingesting = try ingestListener?.start(
      target, of: options, freeSpace.rule, retainMs: retention.retain?.ms, hosts: host, logger: logger,
      isStopping: { shutdown.isStopping },
      endSession: { session in
        let state = try worker.requestEnd(of: session)
        shutdown.wake()
        return state
      }, tombstone: { try worker.store.tombstone(of: $0) }, trouble: { loop.trouble })
    if let spool = source.spool, !drain {
      let next = uploads.upload.map { ", and to \($0) when they have ended" } ?? ""
      say("watching \(spool)/incoming; sessions go to \(store.staging.output)\(next)")
    } else if let queue = source.remote.queue, let location = source.remote.store, !drain {
      say(
        "watching \(queue); batches are in \(location.name(of: "incoming")), sessions go to \(location.name(of: "output"))"
      )
    }
    let profiling = try profileEvery.flatMap { minutes in
      try options.profile.map { try ProfilePrinter($0, everyMinutes: minutes) }
    }
    let end = try drive(loop) { restart.execute(because: $0, of: worker) }
    ingesting?.stop()
    let status = conclude(end, worker.counters, output: store.staging.output, isStopping: shutdown.isStopping)
    if drain, let refused = notifier?.counts.refused, refused > 0 {
      let refused = count(refused, "event was", "events were")
      say("\(refused) refused by the receiver, and kept: see quarantine list --events")
    }
    profiling?.stop()
    if let profile = options.profile, profiling == nil { say(lines: table(profile.rows)) }
    if let status { throw status }
  }

  /// Adds the profile that is printed in between.
  private func profiled(_ options: BatchEncoder.Options) -> BatchEncoder.Options {
    var options = options
    if profileEvery != nil { options.profile = Profile() }
    return options
  }

  private func passes(
    in store: any WorkerStore, _ shutdown: ShutdownState, _ logger: Logger
  ) -> SessionPasses? {
    guard !retention.limits.isEmpty else { return nil }
    if let store = store as? DirectoryStore {
      return .retention(retention.limits, of: store, shutdown: shutdown, logger: logger)
    }
    return (store as? ObjectStore).map {
      .retention(retention.limits, of: $0, shutdown: shutdown, logger: logger)
    }
  }

  private func compaction(
    in store: any WorkerStore, _ shutdown: ShutdownState, _ logger: Logger
  ) -> SessionPasses? {
    guard compact else { return nil }
    return (store as? ObjectStore).map { .compaction(of: $0, shutdown: shutdown, logger: logger) }
  }

  private func serve(
    _ worker: Worker, _ loop: WorkerLoop, _ shutdown: ShutdownState, _ objects: S3Client?, on socket: ListeningSocket
  ) throws -> HTTPServer {
    let routes = HealthRoutes(
      worker, shutdown, version: ProgramVersion.text, requests: { objects?.countsByKind ?? [:] },
      trouble: { loop.trouble })
    let server = try HTTPServer(on: socket, hosts: host) { routes.answer($0) }
    say("listening at http://\(server.address.description)/")
    return server
  }

  /// Runs the loop to its end, with a progress bar for a drain.
  private func drive(
    _ loop: WorkerLoop, onStuck: @escaping @Sendable (JobWatch.Stuck) -> Void
  ) throws -> WorkerLoop.End {
    var progress = Progress(isShown: drain)
    func show(_ work: WorkerLoop.Progress) {
      let suffix = work.quarantined > 0 ? ", \(work.quarantined) in quarantine" : ""
      progress.show(work.done, partly: work.partly, of: work.owed, "batches", suffix: suffix)
    }
    let end = try loop.run(onStuck: onStuck, show: progress.isShown ? show : nil)
    progress.finish()
    return end
  }

  /// Stops the worker at the first signal, and ends the process at the second.
  ///
  /// - Parameter reaping: whether the sandbox of the worker from before a restart may still be a child of this process.
  private static func stop(_ shutdown: ShutdownState, at signals: TerminationSignals, reaping: Bool) throws {
    try ThreadGroup().start {
      while true {
        if signals.wait(ms: reaping ? 1_000 : -1) {
          if shutdown.isStopping {
            StandardError.writeWithTimeout { StandardError.removeBar() }
            _exit(0)
          }
          shutdown.stop()
        }
        while reaping && waitpid(-1, nil, WNOHANG) > 0 {}
      }
    }
  }

  /// Prints the results of a drain, or the failure that ended the worker. Returns the exit status.
  private func conclude(
    _ end: WorkerLoop.End, _ counters: WorkerCounters, output: String, isStopping: Bool
  ) -> ExitCode? {
    guard drain || end.isFatal else { return nil }
    if drain { say(counters.summary + (source.spool == nil ? "" : "; sessions are in \(output)")) }
    if end.heldElsewhere > 0 {
      let held = count(end.heldElsewhere, "batch is", "batches are")
      say("\(held) held by workers of other hosts; a running worker takes over those of dead ones")
    }
    if end.queueHasLostData {
      say("encoder-worker: the queue has lost its data; run reconcile, then run this again", .error)
      return ExitStatus.temporaryFailure
    }
    if let failure = end.failure {
      let next = Disposition.mayHaveLost(failure) ? "" : "; nothing is lost, fix it and run again"
      say("encoder-worker: \(failure)\(next)", .error)
      return ExitStatus.afterRetry(of: failure)
    }
    return counters.quarantined > 0 && !isStopping ? ExitStatus.badBatch : nil
  }

  /// Whether something follows from the end of a session.
  private var announcesEnds: Bool {
    notifications.json || notifications.notify != nil || !exports.export.isEmpty
  }

  /// Opens the queue of batches and the store of segments.
  private func open(
    _ remote: RemoteBackends?, as id: WorkerID, _ options: BatchEncoder.Options, _ shutdown: ShutdownState
  ) throws -> (any BatchQueue, any WorkerStore) {
    let kinds = ViewKinds.on([(.hls, hls), (.thumbnails, thumbnails), (.sentry, events.sentry)])
    guard let remote else {
      let views = SessionViews(
        kinds, announcesEnds: announcesEnds,
        isWindow: !retention.limits.isEmpty || uploads.uploadEvery != nil,
        shouldContinue: shutdown.shouldContinue)
      return try SpoolWorker.open(source.spool ?? "", output: output, as: id, lease: lease, views)
    }
    try remote.objects.requireConditions(tryingAt: "incoming/.\(id)", name: remote.name)
    let staging = try Staging.temporary(for: id)
    let queue = ObjectQueue(
      remote.names, remote.objects, name: remote.name, staging: staging, worker: id,
      maximumBytes: options.limits.unpackedBytes, hasReceipts: storeLayout.layout == .plain)
    return (
      queue,
      ObjectStore(
        remote.objects, name: remote.name, staging: staging, kinds,
        announcesEnds: queue.takesEvents || announcesEnds || compact,
        findsQuiet: endAfter != nil, isWindow: !retention.limits.isEmpty, layout: storeLayout.layout)
    )
  }
}

extension WorkerCounters {
  fileprivate var summary: String {
    var parts = [
      count(published, "batch", "batches") + " published", count(segments, "segment"), count(frames, "frame"),
    ]
    if duplicates > 0 { parts.append("\(duplicates) published before") }
    if refused > 0 { parts.append(count(refused, "frame") + " refused") }
    if refusedBatches > 0 { parts.append(count(refusedBatches, "batch", "batches") + " refused") }
    if quarantined > 0 { parts.append(count(quarantined, "batch", "batches") + " in quarantine") }
    return parts.joined(separator: ", ")
  }
}
