// Runs a worker with swift-metrics until its standard input ends, then prints the metrics: MeasuredWorker SPOOL
import Logging
import Metrics
import MetricsTestKit
import SegmentEncoder

// A server has its own backend, such as swift-prometheus, in this place.
let backend = TestMetrics()
MetricsSystem.bootstrap(backend)

let worker = try SpoolWorker(
  spool: CommandLine.arguments[1], logger: Logger(label: "worker"), metrics: SwiftMetrics())
let work = Task.detached { try await worker.run() }
while readLine() != nil {}
await worker.stop()
try await work.value

for counter in backend.counters.sorted(by: {
  ($0.label, $0.dimensions.first?.1 ?? "") < ($1.label, $1.dimensions.first?.1 ?? "")
}) {
  let labels = counter.dimensions.map { " \($0)=\($1)" }.joined()
  print("\(counter.label)\(labels) \(counter.totalValue)")
}
for timer in backend.timers { print("\(timer.label) \(timer.values.count)") }
