import ArgumentParser
import Glibc
import SegmentEncoder

struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "What waits, what is being worked on, and what is stuck.",
    discussion: """
      Looks from outside: nobody is held up. The rate is what the workers say of their last minute. Exit status 0, whatever it finds.
      """)

  @Option(help: ArgumentHelp("The spool.", valueName: "dir"), completion: .directory)
  var spool: String

  @Option(
    name: .shortAndLong, help: ArgumentHelp("Where sessions go. (default: SPOOL/output)", valueName: "dir"),
    completion: .directory)
  var output: String?

  @Flag(help: "Look again every two seconds until stopped.")
  var watch = false

  @Flag(help: "One line of JSON for each look.")
  var json = false

  @OptionGroup
  var settings: SettingsOption

  func run() throws {
    try reportingFailures {
      let spool = try Spool(opening: spool)
      guard watch else { return show(try SpoolStatus(of: spool, output: output)) }
      let signals = try TerminationSignals()
      repeat {
        let status = try SpoolStatus(of: spool, output: output)
        // A terminal is wiped first; its cursor comes home.
        if !json && isatty(STDOUT_FILENO) == 1 { _ = put("\u{1B}[H\u{1B}[2J", on: STDOUT_FILENO) }
        show(status)
      } while !signals.wait(ms: 2_000)
    }
  }

  private func show(_ status: SpoolStatus) { answer(json ? status.json : Self.text(status)) }

  private static func text(_ status: SpoolStatus) -> String {
    let states = [
      ("waiting", status.waiting, ""),
      ("claimed", status.claimed, status.retrying > 0 ? "\(status.retrying) of them tried again" : ""),
      ("quarantined", status.quarantined, status.quarantined.count > 0 ? "see: quarantine list" : ""),
      ("kept", status.kept, ""),
    ].map { name, heap, note in
      [name, "\(heap.count)", heap.oldestMs.map { age(ms: $0) } ?? "", note]
    }
    let alive = status.workers.filter { $0.life != .dead }
    var text = table([["", "batches", "oldest", ""]] + states)
    text +=
      "\n\n\(count(alive.count, "worker")), \(status.perMinute) batches a minute; \(size(status.freeBytes)) free in \(status.output)"
    guard !status.workers.isEmpty else { return text }
    let rows = status.workers.map { worker in
      let tally = worker.tally
      let held = worker.held.map { held in
        "\(held.batch) (\(age(ms: held.ageMs))\(held.isRetried ? ", attempt \(held.attempt), failed \(held.failures) ×" : ""))"
      }
      let shown = held.prefix(3).joined(separator: ", ") + (held.count > 3 ? ", and \(held.count - 3) more" : "")
      return [
        worker.id, worker.life.rawValue, tally.map { age(ms: Int64($0.runningS) * 1_000) } ?? "",
        tally.map { "\($0.published)" } ?? "", tally.map { "\($0.perMinute)" } ?? "", shown,
      ]
    }
    return text + "\n\n" + table([["worker", "", "running", "published", "a minute", "holds"]] + rows)
  }
}
