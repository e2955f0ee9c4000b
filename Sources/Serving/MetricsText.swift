// Metrics as Prometheus reads them: its text format, version 0.0.4.

import FileSystem
import Glibc
import SegmentEncoder
import Synchronization

package struct MetricsText {
  package private(set) var text = ""

  package init() {}

  package mutating func gauge(_ name: String, _ help: String, _ value: Int) {
    metric(name, help, "gauge", [("", "\(value)")])
  }

  /// Adds a metric, with a sample for each value of a label.
  ///
  /// - Parameter label: empty for a metric without labels.
  package mutating func metric(
    _ name: String, _ help: String, _ type: String, by label: String = "", _ samples: [(of: String, value: String)]
  ) {
    metric(name, help, type, by: label.isEmpty ? [] : [label], samples.map { ([$0.of], $0.value) })
  }

  /// Adds a metric, with a sample for each combination of label values.
  package mutating func metric(
    _ name: String, _ help: String, _ type: String, by labels: [String], _ samples: [(of: [String], value: String)]
  ) {
    begin(name, help, type)
    for sample in samples { add(name, labels, sample.of, value: sample.value) }
  }

  private static func escaped(_ value: String) -> String {
    value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
  }

  mutating func histogram(_ name: String, _ help: String, _ durations: DurationHistogram) {
    histogram(name, help, by: "", [("", durations)])
  }

  /// Adds a histogram for each value of a label.
  ///
  /// - Parameter label: empty for a single one without labels.
  mutating func histogram(
    _ name: String, _ help: String, by label: String, _ all: [(of: String, durations: DurationHistogram)]
  ) {
    begin(name, help, "histogram")
    for (value, durations) in all {
      let (labels, values): ([String], [String]) = label.isEmpty ? ([], []) : ([label], [value])
      var total = 0
      for (index, count) in durations.counts.enumerated() {
        total += count
        let bound = index < durations.boundsS.count ? "\(durations.boundsS[index])" : "+Inf"
        add(name + "_bucket", labels + ["le"], values + [bound], value: "\(total)")
      }
      add(name + "_sum", labels, values, value: "\(durations.sumS)")
      add(name + "_count", labels, values, value: "\(total)")
    }
  }

  /// Metrics of the process.
  package mutating func process(version: String) {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    let cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime)
    metric(
      "process_cpu_seconds_total", "CPU time of this process, without that of the decoders it starts.", "counter",
      [("", "\(cpu)")])
    if let resident = Self.residentBytes {
      gauge("process_resident_memory_bytes", "Memory of this process.", resident)
    }
    metric(
      "encoder_worker_build_info", "1, with the version.", "gauge", by: "version", [(version, "1")])
  }

  private mutating func begin(_ name: String, _ help: String, _ type: String) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
  }

  private mutating func add(_ name: String, _ labels: [String] = [], _ labelValues: [String] = [], value: String) {
    let pairs = zip(labels, labelValues).map { "\($0)=\"\(Self.escaped($1))\"" }
    text += name + (pairs.isEmpty ? "" : "{\(pairs.joined(separator: ","))}") + " \(value)\n"
  }

  /// The second number of /proc/self/statm, in bytes; see proc(5).
  private static var residentBytes: Int? {
    guard let file = try? FileBytes(opening: "/proc/self/statm") else { return nil }
    let pages = String(decoding: file.bytes(at: 0, 256), as: UTF8.self).split(separator: " ").dropFirst().first
    return pages.flatMap { Int($0) }.map { $0 * Int(sysconf(Int32(_SC_PAGESIZE))) }
  }
}

/// Counts requests by status.
final class RequestMeter: Sendable {
  private let state = Mutex<(active: Int, byStatus: [Int: Int])>((0, [:]))

  func begin() { state.withLock { $0.active += 1 } }

  func end(status: Int) {
    state.withLock { state in
      state.active -= 1
      state.byStatus[status, default: 0] += 1
    }
  }

  func write(to text: inout MetricsText) {
    let (active, byStatus) = state.withLock { $0 }
    text.gauge("encoder_worker_http_requests_active", "Requests being answered.", active)
    text.metric(
      "encoder_worker_http_requests_total", "Requests answered, by status.", "counter", by: "status",
      byStatus.sorted { $0.key < $1.key }.map { ("\($0.key)", "\($0.value)") })
  }
}
