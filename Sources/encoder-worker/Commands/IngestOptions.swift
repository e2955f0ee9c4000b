import ArgumentParser
import Batching
import CLinux
import FileSystem
import FrameBatches
import Glibc
import Ingesting
import Logging
import SegmentEncoder
import Serving
import Sessions
import WorkQueues

/// The listener of `run` that takes batches and pictures over HTTP.
struct IngestOptions: ParsableArguments {
  static let stateHelp =
    "Durable local directory of a worker with --store, for pictures that come one by one."

  @Option(
    help: .setting(
      "Take batches and pictures over HTTP on this address; a port alone means localhost. See docs/ingest.md.",
      valueName: "host:port"),
    transform: ListenAddress.init(_:))
  var ingest: ListenAddress?

  @Option(
    help: .setting(
      "File with a line NAME TOKEN [SESSION-PREFIX] for each producer; read again at SIGHUP. Others may not read it.",
      valueName: "file"),
    completion: .file())
  var ingestTokens: String?

  @Flag(help: .setting("Take everything from everybody who can reach the address of --ingest."))
  var ingestOpen = false

  @Option(
    help: .setting(
      "Let web pages of this origin send; may be repeated. See docs/ingest.md.", valueName: "origin",
      example: "https://app.example"))
  var ingestOrigin: [String] = []

  @Option(
    help: .setting("With --ingest: refuse more while this many batches wait.", valueName: "batches"))
  var ingestBacklog = 10_000

  @Option(
    help: .setting(
      Self.stateHelp, valueName: "dir"),
    completion: .directory)
  var ingestState: String?

  func validate() throws {
    try require("--ingest-backlog", ingestBacklog, in: 1...10_000_000, "batches")
    guard let ingest else {
      let others = [
        "--ingest-tokens": ingestTokens != nil, "--ingest-open": ingestOpen, "--ingest-state": ingestState != nil,
        "--ingest-origin": !ingestOrigin.isEmpty,
      ]
      if let option = others.filter(\.value).keys.min() { throw ValidationError("\(option) works with --ingest") }
      return
    }
    for origin in ingestOrigin {
      if let fault = PageOrigins.fault(of: origin) {
        throw ValidationError("--ingest-origin \(origin.shortened(to: 80)): \(fault)")
      }
    }
    if ingestTokens != nil && ingestOpen { throw ValidationError("--ingest-tokens or --ingest-open: one or the other") }
    if ingestTokens == nil && !ingestOpen && !ingest.isLoopback {
      throw ValidationError(
        "--ingest \(ingest.description) takes batches from other machines: give producers tokens with --ingest-tokens FILE, or allow everybody with --ingest-open"
      )
    }
  }

  /// Reads the tokens and binds the address. Call it before the process has threads.
  ///
  /// - Returns: nil without `--ingest`.
  func listener() throws -> IngestListener? {
    try ingest.map { address in
      let hangups = ingestTokens == nil ? -1 : clinux_hangup_descriptor()
      return IngestListener(
        options: self, socket: try ListeningSocket(at: address),
        tokens: try ingestTokens.map { try IngestTokens(file: $0) }, hangups: hangups)
    }
  }
}

/// A bound address, and the tokens of those who may write.
struct IngestListener {
  let options: IngestOptions
  let socket: ListeningSocket
  let tokens: IngestTokens?
  /// Readable at SIGHUP.
  fileprivate let hangups: Int32

  fileprivate init(options: IngestOptions, socket: ListeningSocket, tokens: IngestTokens?, hangups: Int32) {
    (self.options, self.socket, self.tokens, self.hangups) = (options, socket, tokens, hangups)
  }

  /// The queue of batches that a worker has.
  enum Target {
    case spool(String)
    case remote(RemoteBackends, Staging)
  }

  /// Starts to take batches.
  ///
  /// - Parameters:
  ///   - retainMs: the age, in milliseconds, up to which segments are kept; nil for any.
  ///   - endSession: ends a session once all its batches are finished.
  ///   - tombstone: returns that of a session that was deleted.
  ///   - trouble: the reason why the worker starts no batch; nil if it does.
  func start(
    _ target: Target, of worker: BatchEncoder.Options, _ freeSpace: FreeSpace, retainMs: Int64?, hosts: [String],
    logger: Logger,
    isStopping: @escaping @Sendable () -> Bool, endSession: @escaping @Sendable (SessionID) throws -> EndState,
    tombstone: @escaping @Sendable (SessionID) throws -> Tombstone?,
    trouble: @escaping @Sendable () -> String?
  ) throws -> IngestServer {
    var settings = IngestSettings()
    settings.input = worker.input
    settings.limits = worker.limits
    (settings.freeSpace, settings.retainMs) = (freeSpace, retainMs)
    settings.backlog = options.ingestBacklog
    let intake: any BatchIntake
    let pictureSpool: Spool?
    var forwarder: BatchForwarder?
    var hook: StoreHook?
    var tombstone = tombstone
    switch target {
    case .spool(let path):
      let spool = try Spool(creating: path)
      intake = try SpoolIntake(spool)
      pictureSpool = spool
    case .remote(let remote, let staging):
      tombstone = LivingSessions(tombstone).tombstone
      let state = try options.ingestState.map { try Spool(creating: $0) }
      let scratch = Staging.Scratch(in: staging)
      intake = ObjectIntake(remote.batches, remote.names) {
        if let state { return state.temporary }
        try scratch.make()
        return scratch.path
      }
      hook = StoreHook(remote.objects.location.place, queueingIn: remote.names)
      pictureSpool = state
      forwarder = state.map { state in
        BatchForwarder(state, to: StoreReceiver(remote.batches, remote.names), limits: worker.limits) { news in
          switch news {
          case .sent: break
          case .refused(let refused, let name):
            logger.error("ingest.failed", metadata: ["error": "\(refused)", "quarantined": "\(name)"])
          case .failing(let cause): logger.error("ingest.failed", metadata: ["error": "\(cause)"])
          case .recovered: logger.notice("ingest.recovered")
          }
        }
      }
    }
    let context = IngestContext(
      intake, settings, decoders: worker.decoders, logger: logger, isStopping: isStopping, tombstone: tombstone)
    var frameInput = InputOptions()
    (frameInput.capture, frameInput.intervalMs) = (worker.input.capture, worker.input.intervalMs)
    let pictures = try pictureSpool.map {
      try PictureIntake($0, input: frameInput, limits: worker.limits, logger: logger)
    }
    let routes = IngestRoutes(
      context, pictures: pictures, hook: hook, tokens: tokens,
      origins: PageOrigins(options.ingestOrigin), version: ProgramVersion.text, forward: forwarder.map { $0.run },
      endSession: endSession, trouble: trouble)
    let server = try IngestServer(
      routes, context, on: socket, hosts: hosts, pictures: pictures, forwarder: forwarder, logger: logger)
    if let tokens { try reload(tokens, logger) }
    say("taking batches at http://\(server.address.description)/v1/")
    return server
  }

  /// Reads the tokens again at each SIGHUP.
  private func reload(_ tokens: IngestTokens, _ logger: Logger) throws {
    try ThreadGroup().start { [hangups] in
      var signal = signalfd_siginfo()
      while true {
        guard read(hangups, &signal, MemoryLayout<signalfd_siginfo>.size) > 0 else {
          if errno == EINTR { continue }
          return
        }
        tokens.reload(logger)
      }
    }
  }
}
