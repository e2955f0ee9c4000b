import ArgumentParser
import CLinux
import Encoding
import FileSystem
import Glibc
import SegmentEncoder
import Serving
import Sessions
import Showing

struct ServeCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Show sessions in a browser.",
    usage: """
      encoder-worker serve <output> [<options>]
      encoder-worker serve --store <url> [<options>]
      """,
    discussion: """
      Serves a list of sessions and a player for each, directly from the segments. It writes nothing to the output and sends no request to other hosts but a store. There is no login: everybody who can reach the address sees all sessions. It listens on localhost only, unless --listen says otherwise; put a proxy with a login before it.

      With --store it shows the sessions of a store. It copies what is asked for below TMPDIR, up to 4 GiB, and checks each object. A store of a file or of the environment does not count if OUTPUT is named.
      """)

  static let page = HelpPage(example: "serve sessions", common: ["listen", "host", "store"])

  @Argument(
    help: ArgumentHelp("The directory with the sessions; none with --store.", valueName: "output"),
    completion: .directory)
  var output: String?

  @OptionGroup var place: SessionStoreOptions

  @Option(
    help: .setting(
      "Address to listen on; a port alone means localhost, 0 a free port.", default: "127.0.0.1:8080",
      valueName: "host:port"),
    transform: ListenAddress.init(_:))
  var listen: ListenAddress?

  @Option(
    help: .setting("Accept requests for this host name, too. May be given several times.", valueName: "name"))
  var host: [String] = []

  @OptionGroup var freeSpace: FreeSpaceOption
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws {
    if output != nil && CallOptions.has("--store") {
      throw ValidationError("serve shows a directory or a store: name OUTPUT or --store, not both")
    }
    if output == nil && place.store == nil {
      throw MissingOption.error("<output>", "The directory with the sessions; or --store URL for those of a store.")
    }
  }

  func execute() throws {
    let decoders = try sandbox.videoDecoders()
    // The allocator would keep memory for each connection. Decoders, which are forked by now, keep theirs.
    clinux_keep_memory(128 << 10, 128 << 10)
    let signals = try TerminationSignals()
    if let output {
      guard try waitForOutput(output, signals) else { return }
      try serve(catalog(of: output, decoders), decoders, signals)
    } else {
      let store = try place.sessions()
      // The next command removes what a killed one has left.
      let stored = try StoredOutput(store, in: Staging.temporary(for: WorkerID()), freeSpace.rule)
      try serve(SessionCatalog(of: stored, decoders: decoders), decoders, signals, atEnd: stored.remove)
    }
  }

  private func catalog(of output: String, _ decoders: DecoderForkServer?) throws -> SessionCatalog {
    let catalog: SessionCatalog
    do {
      catalog = try SessionCatalog(of: output, decoders: decoders)
    } catch let failure as DiskError where failure.code == ENOENT || failure.code == ENOTDIR {
      throw Failure(.usage, "", output, "no such directory; name a worker's output")
    }
    do {
      try SessionDirectory.requireOutside(output)
    } catch let session as BadTarget {
      throw Failure(
        .usage, "", output, "\(session.cause), and serve shows all of a directory",
        advice: "\(session.advice), and open the session there")
    }
    if try catalog.isSpool() {
      throw Failure(
        .usage, "", output, "a spool; its sessions are in \(output)/output, or where its worker says")
    }
    return catalog
  }

  /// - Parameter removeCopies: called at the end.
  private func serve(
    _ catalog: SessionCatalog, _ decoders: DecoderForkServer?, _ signals: TerminationSignals,
    atEnd removeCopies: () -> Void = {}
  ) throws {
    // Also if the address is taken.
    defer { removeCopies() }
    let site = SessionRoutes(
      catalog, scratch: Staging.temporaryDirectory, freeSpace.rule, version: ProgramVersion.text)
    let server = try HTTPServer(
      on: ListeningSocket(at: listen ?? ListenAddress(host: "127.0.0.1", port: 8_080)), hosts: host
    ) { site.answer($0) }
    if !server.address.isLoopback && host.isEmpty {
      say("encoder-worker: everybody who can reach \(server.address.description) sees all sessions")
    }
    // A lost mount may block this thread, not the main one.
    let sweeper = try PeriodicThread("removed sessions", everyMs: 2_000) { try? site.forgetRemovedSessions() }
    defer { sweeper.stop() }
    // A thread of its own: a long list takes seconds to read at first. That of a store has a pace of its own.
    let lister = try PeriodicThread("list of sessions", everyMs: catalog.isRemote ? 200 : 2_000) {
      try? site.refreshList()
    }
    defer { lister.stop() }
    answer("http://\(server.address.description)/")
    while !signals.wait(ms: 5_000) { decoders?.endIdle() }
    removeCopies()
    // Nothing else needs cleanup. Do not wait for clients that download a long film.
    _exit(0)
  }

  /// Waits for the output, which its worker makes.
  ///
  /// - Returns: false if a signal ends the wait.
  private func waitForOutput(_ output: String, _ signals: TerminationSignals) throws -> Bool {
    if try !DurableFile.isThere(output) {
      say("encoder-worker: waiting for \(output), which does not exist yet; a worker makes it")
    }
    while try !DurableFile.isThere(output) {
      if signals.wait(ms: 500) { return false }
    }
    return true
  }
}
