// Metrics as Prometheus reads them: its text format, version 0.0.4.

import Glibc
import SegmentEncoder
import Synchronization

struct MetricsText {
  private(set) var text = ""

  mutating func gauge(_ name: String, _ help: String, _ value: Int) { metric(name, help, "gauge", [([], "\(value)")]) }

  mutating func counter(_ name: String, _ help: String, _ value: Int) {
    metric(name, help, "counter", [([], "\(value)")])
  }

  /// One metric with a value for each of a label's.
  mutating func metric(
    _ name: String, _ help: String, _ type: String, _ values: [(labels: [(String, String)], value: String)]
  ) {
    begin(name, help, type)
    for (labels, value) in values { add(name, labels, value) }
  }

  /// - Parameters:
  ///   - bounds: what each count but the last is up to.
  ///   - counts: one more than the bounds.
  mutating func histogram(_ name: String, _ help: String, bounds: [Double], counts: [Int], sum: Double) {
    begin(name, help, "histogram")
    var total = 0
    for (index, count) in counts.enumerated() {
      total += count
      add(name + "_bucket", [("le", index < bounds.count ? "\(bounds[index])" : "+Inf")], "\(total)")
    }
    add(name + "_sum", [], "\(sum)")
    add(name + "_count", [], "\(total)")
  }

  /// Metrics of the process.
  mutating func process() {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    let cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime)
    metric(
      "process_cpu_seconds_total", "CPU time of this process, without that of the decoders it starts.", "counter",
      [([], "\(cpu)")])
    if let resident = Self.residentBytes {
      gauge("process_resident_memory_bytes", "Memory of this process.", resident)
    }
    metric(
      "encoder_worker_build_info", "1, with the version.", "gauge",
      [([("version", EncoderWorker.version)], "1")])
  }

  private mutating func begin(_ name: String, _ help: String, _ type: String) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
  }

  private mutating func add(_ name: String, _ labels: [(String, String)], _ value: String) {
    let list = labels.map { label, value in "\(label)=\"\(Self.escaped(value))\"" }.joined(separator: ",")
    text += name + (list.isEmpty ? "" : "{\(list)}") + " \(value)\n"
  }

  private static func escaped(_ value: String) -> String {
    value.map { character in
      switch character {
      case "\\": "\\\\"
      case "\"": "\\\""
      case "\n": "\\n"
      default: String(character)
      }
    }.joined()
  }

  private static var residentBytes: Int? {
    guard let file = fopen("/proc/self/statm", "r") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, Int32(line.count), file) != nil else { return nil }
    let pages = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      .split(separator: " ").dropFirst().first.flatMap { Int($0) }
    return pages.map { $0 * Int(sysconf(Int32(_SC_PAGESIZE))) }
  }
}

/// Requests, by what became of them.
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
      "encoder_worker_http_requests_total", "Requests answered, by status.", "counter",
      byStatus.sorted { $0.key < $1.key }.map { ([("status", "\($0.key)")], "\($0.value)") })
  }
}
