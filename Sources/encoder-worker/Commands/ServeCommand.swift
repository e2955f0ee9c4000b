import ArgumentParser
import CLinux
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
    discussion: """
      Serves a list of sessions and a player for each, directly from the segments. It writes nothing to the output and sends no request to other hosts. There is no login: everybody who can reach the address sees all sessions. It listens on localhost only, unless --listen says otherwise; put a proxy with a login before it.
      """)

  static let page = HelpPage(example: "serve sessions", common: ["listen", "host"])

  @Argument(help: ArgumentHelp("The directory with the sessions.", valueName: "output"), completion: .directory)
  var output: String

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

  func execute() throws {
    let decoders = try sandbox.videoDecoders()
    // The allocator would keep memory for each connection. Decoders, which are forked by now, keep theirs.
    clinux_keep_memory(128 << 10, 128 << 10)
    let signals = try TerminationSignals()
    guard try waitForOutput(signals) else { return }
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
    let site = SessionRoutes(
      catalog, scratch: temporaryDirectory, freeSpace.rule, version: EncoderWorker.version)
    let server = try HTTPServer(
      on: ListeningSocket(at: listen ?? ListenAddress(host: "127.0.0.1", port: 8_080)), hosts: host
    ) { site.answer($0) }
    if !server.address.isLoopback && host.isEmpty {
      say("encoder-worker: everybody who can reach \(server.address.description) sees all sessions")
    }
    // A lost mount may block this thread, not the main one.
    let sweeper = try PeriodicThread("removed sessions", everyMs: 2_000) { try? site.forgetRemovedSessions() }
    defer { sweeper.stop() }
    // A thread of its own: a long list takes seconds to read at first.
    let lister = try PeriodicThread("list of sessions", everyMs: 2_000) { try? site.refreshList() }
    defer { lister.stop() }
    answer("http://\(server.address.description)/")
    while !signals.wait(ms: 5_000) { decoders?.endIdle() }
    // Nothing needs cleanup. Do not wait for clients that download a long film.
    _exit(0)
  }

  /// Waits for the output, which its worker makes.
  ///
  /// - Returns: false if a signal ends the wait.
  private func waitForOutput(_ signals: TerminationSignals) throws -> Bool {
    if try !DurableFile.isThere(output) {
      say("encoder-worker: waiting for \(output), which does not exist yet; a worker makes it")
    }
    while try !DurableFile.isThere(output) {
      if signals.wait(ms: 500) { return false }
    }
    return true
  }
}
