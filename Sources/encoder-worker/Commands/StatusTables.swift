// The tables of `status`.

import FileSystem
import Sessions
import WorkQueues

extension SpoolStatus {
  func text(_ growth: OutputGrowth) -> String {
    let retriedMs = workers.flatMap(\.held).filter(\.isRetried).map(\.ageMs).max()
    var text = table([
      ["", "batches", "oldest", ""],
      waiting.row("waiting", timeLeft),
      claimed.row("claimed"),
      QueueDepth(count: retrying, oldestMs: retriedMs).row("retrying", retrying > 0 ? "of those claimed" : ""),
      quarantined.row("quarantined", quarantined.count > 0 ? "see: quarantine list" : ""),
      kept.row("done", kept.count > 0 ? "published, and kept" : ""),
    ])
    text +=
      "\n\n\(count(perMinute, "batch", "batches")) a minute; \(liveness); \(size(freeBytes)) free in \(output.oneLine)"
    if pictures > 0 { text += "; \(count(pictures, "picture")) in no batch yet" }
    if let bytes = growth.bytesADay, let days = growth.daysLeft(free: freeBytes) {
      text += "; \(size(bytes)) a day, full in \(count(days, "day"))"
    }
    if let uploads { text += "\n\n" + uploads.text }
    guard !workers.isEmpty else { return text }
    return text + "\n\n" + table([["worker", "", "running", "published", "a minute", "holds"]] + workers.map(\.row))
  }

  /// The time that the waiting batches will take at the present rate.
  private var timeLeft: String {
    guard waiting.count > 0, perMinute > 0 else { return "" }
    return "some \(duration(ms: Int64(waiting.count) * 60_000 / Int64(perMinute))) at this rate"
  }

  /// `2 workers alive, 1 dead`.
  private var liveness: String {
    let counts = Dictionary(grouping: workers, by: \.life).mapValues(\.count)
    let others = [Worker.Liveness.elsewhere, .unknown, .dead].compactMap { life in
      counts[life].map { ", \($0) \(life.rawValue)" }
    }
    return "\(count(counts[.alive] ?? 0, "worker")) alive" + others.joined()
  }
}

extension UploadState {
  /// `3 sessions, 12 MB, wait for s3://replay, the oldest for 2 h`, and why.
  fileprivate var text: String {
    let nowMs = WallClock.nowMs
    let age = sinceMs.map { ", the oldest for \(duration(ms: max(0, nowMs - $0)))" } ?? ""
    var text =
      sessions == 0
      ? "all sessions that are due are in \(store)"
      : "\(count(sessions, "session waits", "sessions wait")) for \(store): \(size(bytes))\(age)"
    if deletions > 0 { text += "; \(count(deletions, "deletion waits", "deletions wait")), too" }
    text += "; looked \(duration(ms: max(0, nowMs - atMs))) ago"
    return (failure.map { "\(text): \($0)" } ?? text).oneLine
  }
}

extension SpoolStatus.Worker {
  fileprivate var row: [String] {
    let held = held.map { held in
      "\(held.batch) (\(duration(ms: held.ageMs))\(held.isRetried ? ", attempt \(held.attempt), failed \(held.failures) ×" : ""))"
    }
    let shown = held.prefix(3).joined(separator: ", ") + (held.count > 3 ? ", and \(held.count - 3) more" : "")
    return [
      id, life.rawValue, counters.map { duration(ms: Int64($0.runningS) * 1_000) } ?? "",
      counters.map { "\($0.published)" } ?? "", counters.map { "\($0.perMinute)" } ?? "", shown,
    ]
  }
}

extension RemoteStatus {
  func text(_ growth: OutputGrowth) -> String {
    let lag = names.isApproximate ? "as the queue counts them" : ""
    let rows = [
      names.waiting.row("waiting", lag), names.claimed.row("claimed", lag), owed.row("owed", "in incoming/"),
      quarantined.row("quarantined", quarantined.count > 0 ? "see: quarantine list" : ""),
      refusedEvents.row("refused events", refusedEvents.count > 0 ? "see: quarantine list --events" : ""),
      ending.row("sessions to end"),
      open.row("sessions that go on", open.count > 0 ? "of workers with --end-after" : ""),
    ]
    let objects = growth.objectsADay.map { " in \(count($0, "object"))" } ?? ""
    let bytes =
      growth.bytesADay.map { "\(growth.isEstimate ? "some " : "")\(size($0))\(objects) a day" }
      ?? "bytes a day are not known"
    return table([["", "number", "oldest", ""]] + rows) + "\n\n\(queue.oneLine); \(store.oneLine); \(bytes)"
  }
}

extension QueueDepth {
  fileprivate func row(_ name: String, _ note: String = "") -> [String] {
    [name, "\(count)\(isPartial ? "+" : "")", oldestMs.map { duration(ms: $0) } ?? "", note]
  }
}
