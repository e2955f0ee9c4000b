// Runs a worker in a service group until SIGTERM, then prints its metrics and the names of its spans: WorkerService SPOOL
import InMemoryTracing
import Logging
import Metrics
import MetricsTestKit
import SegmentEncoder
import ServiceLifecycle
import Tracing

// A server has its own backends in this place, such as swift-prometheus and swift-otel.
let (metrics, tracer) = (TestMetrics(), InMemoryTracer())
MetricsSystem.bootstrap(metrics)
InstrumentationSystem.bootstrap(tracer)

let logger = Logger(label: "worker")
let worker = try SpoolWorker(spool: CommandLine.arguments[1], logger: logger)
try await ServiceGroup(services: [worker], gracefulShutdownSignals: [.sigterm], logger: logger).run()

for counter in metrics.counters.sorted(by: {
  ($0.label, $0.dimensions.first?.1 ?? "") < ($1.label, $1.dimensions.first?.1 ?? "")
}) {
  let labels = counter.dimensions.map { " \($0)=\($1)" }.joined()
  print("\(counter.label)\(labels) \(counter.totalValue)")
}
for timer in metrics.timers { print("\(timer.label) \(timer.values.count)") }
for name in Set(tracer.finishedSpans.map(\.operationName)).sorted() { print("span \(name)") }
for span in tracer.finishedSpans where !span.links.isEmpty { print("link of \(span.operationName)") }
