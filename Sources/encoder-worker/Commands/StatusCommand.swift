import ArgumentParser
import FileSystem
import Glibc
import SegmentEncoder
import Sessions
import WorkQueues

struct StatusCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show batches, workers and the free space of a spool.",
    discussion: """
      Reads the spool without any locks. The rate is that of the workers' last minute. The bytes a day are those of the sessions' files of the last 24 hours; an output that is younger than an hour says nothing of a day. The exit status is 0 unless the spool cannot be read.
      """)

  static let page = HelpPage(
    example: "status --spool spool", required: [["spool"]], common: ["output", "watch", "json"])

  @OptionGroup var directories: SpoolOptions

  @Flag(help: "Refresh every two seconds until stopped.")
  var watch = false

  @OptionGroup var results: ResultOptions
  @OptionGroup var settings: SettingsOption

  func execute() throws {
    let spool = try Spool(opening: directories.spool)
    let growth = try OutputGrowth(of: directories.output ?? spool.defaultOutput)
    guard watch else { return show(try SpoolStatus(of: spool, output: directories.output), growth) }
    let signals = try TerminationSignals()
    if !results.json, TerminalScreen(of: STDOUT_FILENO) != nil { _ = put("\u{1B}[2J", on: STDOUT_FILENO) }
    repeat {
      let status = try SpoolStatus(of: spool, output: directories.output)
      if !results.json, let screen = TerminalScreen(of: STDOUT_FILENO) {
        _ = put(screen.page(Self.text(status, growth)), on: STDOUT_FILENO)
      } else {
        show(status, growth)
      }
    } while !signals.wait(ms: 2_000)
  }

  private func show(_ status: SpoolStatus, _ growth: OutputGrowth) {
    results.print(json: status.json(growth), text: Self.text(status, growth))
  }

  private static func text(_ status: SpoolStatus, _ growth: OutputGrowth) -> String {
    let retriedMs = status.workers.flatMap(\.held).filter(\.isRetried).map(\.ageMs).max()
    let states = [
      ("waiting", status.waiting.count, status.waiting.oldestMs, timeLeft(status)),
      ("claimed", status.claimed.count, status.claimed.oldestMs, ""),
      ("retrying", status.retrying, retriedMs, status.retrying > 0 ? "of those claimed" : ""),
      (
        "quarantined", status.quarantined.count, status.quarantined.oldestMs,
        status.quarantined.count > 0 ? "see: quarantine list" : ""
      ),
      ("done", status.kept.count, status.kept.oldestMs, status.kept.count > 0 ? "published, and kept" : ""),
    ].map { name, count, oldestMs, note in [name, "\(count)", oldestMs.map { duration(ms: $0) } ?? "", note] }
    var text = table([["", "batches", "oldest", ""]] + states)
    text +=
      "\n\n\(count(status.perMinute, "batch", "batches")) a minute; \(workers(status)); \(size(status.freeBytes)) free in \(status.output.oneLine)"
    if status.pictures > 0 { text += "; \(count(status.pictures, "picture")) in no batch yet" }
    if let bytes = growth.bytesADay, let days = growth.daysLeft(free: status.freeBytes) {
      text += "; \(size(bytes)) a day, full in \(count(days, "day"))"
    }
    guard !status.workers.isEmpty else { return text }
    let rows = status.workers.map { worker in
      let counters = worker.counters
      let held = worker.held.map { held in
        "\(held.batch) (\(duration(ms: held.ageMs))\(held.isRetried ? ", attempt \(held.attempt), failed \(held.failures) ×" : ""))"
      }
      let shown = held.prefix(3).joined(separator: ", ") + (held.count > 3 ? ", and \(held.count - 3) more" : "")
      return [
        worker.id, worker.life.rawValue, counters.map { duration(ms: Int64($0.runningS) * 1_000) } ?? "",
        counters.map { "\($0.published)" } ?? "", counters.map { "\($0.perMinute)" } ?? "", shown,
      ]
    }
    return text + "\n\n" + table([["worker", "", "running", "published", "a minute", "holds"]] + rows)
  }

  /// The time that the waiting batches will take at the present rate.
  private static func timeLeft(_ status: SpoolStatus) -> String {
    guard status.waiting.count > 0, status.perMinute > 0 else { return "" }
    return "some \(duration(ms: Int64(status.waiting.count) * 60_000 / Int64(status.perMinute))) at this rate"
  }

  /// `2 workers alive, 1 dead`.
  private static func workers(_ status: SpoolStatus) -> String {
    let counts = Dictionary(grouping: status.workers, by: \.life).mapValues(\.count)
    let others = [SpoolStatus.Worker.Liveness.elsewhere, .unknown, .dead].compactMap { life in
      counts[life].map { ", \($0) \(life.rawValue)" }
    }
    return "\(count(counts[.alive] ?? 0, "worker")) alive" + others.joined()
  }
}
