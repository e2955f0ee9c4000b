import FileSystem

/// Writes a worker's counters and rate for status commands every few seconds.
struct ThroughputReporter {
  private static let (everyMs, overMs) = (5_000, 60_000)

  private let startedAt = MonotonicClock.milliseconds()
  private var samples: [(at: Int, published: Int)] = []

  /// Write errors are ignored: nothing depends on this file.
  mutating func show(_ worker: Worker) {
    let now = MonotonicClock.milliseconds()
    guard now - (samples.last?.at ?? .min / 2) >= Self.everyMs else { return }
    var counters = worker.counters
    counters.perMinute = perMinute(counters.published, now)
    counters.runningS = (now - startedAt) / 1_000
    try? worker.queue.show(counters)
  }

  private mutating func perMinute(_ published: Int, _ now: Int) -> Int {
    // Keep the sample at the beginning of the last minute.
    while samples.count > 1, now - samples[1].at >= Self.overMs { samples.removeFirst() }
    samples.append((now, published))
    let spanMs = now - samples[0].at
    return spanMs > 0 ? (published - samples[0].published) * Self.overMs / spanMs : 0
  }
}
