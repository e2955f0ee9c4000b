import ArgumentParser
import FileSystem
import Glibc
import Remote
import SegmentEncoder
import Sessions
import WorkQueues

struct StatusCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show the state of a spool, or of a queue and a store.",
    usage: """
      encoder-worker status --spool <dir> [<options>]
      encoder-worker status --queue <url> --store <url> [<options>]
      """,
    discussion: """
      Reads without any locks, and changes nothing. The rate is that of the workers' last minute. The bytes a day are those of the sessions' files of the last 24 hours; an output that is younger than an hour says nothing of a day. A store is asked for at most 350 lists: counts beyond that end with +, and the bytes a day are estimated from some sessions, or not known. The exit status is 0 unless the place cannot be read.
      """)

  static let page = HelpPage(
    example: "status --spool spool", required: [["spool"], ["queue", "store"]], common: ["output", "watch", "json"])

  @Option(help: .setting(SpoolOptions.spoolHelp, valueName: "dir", place: .spool), completion: .directory)
  var spool: String?

  @Option(
    name: .shortAndLong, help: .setting("The directory for sessions.", default: "SPOOL/output", valueName: "dir"),
    completion: .directory)
  var output: String?

  @OptionGroup var remote: StoredQueueOptions

  @Flag(help: "Refresh until stopped: every two seconds, with a store every ten.")
  var watch = false

  @OptionGroup var results: ResultOptions
  @OptionGroup var settings: SettingsOption

  /// Milliseconds between two looks at a spool, and at a store, whose requests cost money.
  private static let (spoolMs, storeMs) = (2_000, 10_000)

  func validate() throws {
    if spool == nil && remote.isMissing { throw ValidationError("--spool DIR is missing, or --queue and --store") }
    if spool != nil && !remote.isMissing {
      throw ValidationError("--spool, or --queue and --store: one or the other")
    }
    try remote.requireBoth()
    if spool == nil { try CallOptions.refuse("--output", "-o", without: "--spool") }
  }

  func execute() throws {
    if let spool {
      let spool = try Spool(opening: spool)
      let growth = try OutputGrowth(of: output ?? spool.defaultOutput)
      let signals = watch ? try TerminationSignals() : nil
      func isOver() -> Bool { signals?.wait(ms: Self.spoolMs) ?? true }
      return try show(until: isOver) {
        let status = try SpoolStatus(of: spool, output: output)
        return (status.json(growth), status.text(growth))
      }
    }
    let signals = try TerminationSignals()
    let stop = SignalledStop(signals)
    let place = try remote.open { stop.isRequested }
    do {
      let growth = try OutputGrowth(of: StoredSessions(place.objects, name: place.name)) { try stop.check() }
      func isOver() -> Bool { !watch || stop.isRequested || signals.wait(ms: Self.storeMs) }
      try show(until: isOver) {
        let status = try RemoteStatus(place.names(), of: "\(place.queue)", place.objects, name: place.name)
        return (status.json(growth), status.text(growth))
      }
    } catch is Cancelled where watch {
      // Stopped during a request.
    }
  }

  /// Prints a status, or one after the other.
  ///
  /// - Parameter isOver: waits, and tells whether that was the last one.
  private func show(until isOver: () -> Bool, _ status: () throws -> (json: String, text: String)) throws {
    if watch, !results.json, TerminalScreen(of: STDOUT_FILENO) != nil { _ = put("\u{1B}[2J", on: STDOUT_FILENO) }
    repeat {
      let status = try status()
      if watch, !results.json, let screen = TerminalScreen(of: STDOUT_FILENO) {
        _ = put(screen.page(status.text), on: STDOUT_FILENO)
      } else {
        results.print(json: status.json, text: status.text)
      }
    } while !isOver()
  }
}
