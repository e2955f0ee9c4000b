// The time that batches take, by stage. Its size does not grow with the number of measurements.

import Glibc
import Synchronization

/// The time that decoding one picture took.
package struct DecodingWork {
  package var decoding = Profile.Span()
  package var converting = Profile.Span()

  package init(decoding: Profile.Span = Profile.Span(), converting: Profile.Span = Profile.Span()) {
    self.decoding = decoding
    self.converting = converting
  }
}

package final class Profile: Sendable {
  /// A timed step, in the order of the steps.
  package enum Stage: String, Sendable, CaseIterable {
    /// Listing and parsing a batch, and checking whether it is published.
    case open
    /// Reading and hashing a frame's files.
    case read
    /// Decoding a frame's files.
    case decode
    /// Converting the pixels for the encoder: colours, orientation, masks, subsampling.
    case convert
    /// The overhead of the sandbox.
    case sandbox
    /// Opening the encoder and encoding a segment's pictures.
    case encode
    /// Muxing a segment and reading it back.
    case mux
    /// Hashing a segment and writing it to the disk.
    case write
    /// Publishing a batch's segments and manifests.
    case publish
    /// Updating the session's views.
    case views

    package var unit: String {
      switch self {
      case .open, .publish, .views: "batch"
      case .read, .decode, .convert, .sandbox: "frame"
      case .encode, .mux, .write: "segment"
      }
    }
  }

  private let stages = Mutex<[Stage: Durations]>([:])
  private let parent: Profile?
  private let keepsSpread: Bool

  package init() { (parent, keepsSpread) = (nil, true) }

  /// A profile of sums only, for one batch.
  ///
  /// - Parameter parent: gets each measurement, too.
  package init(sumsFor parent: Profile?) { (self.parent, keepsSpread) = (parent, false) }

  package func start(_ stage: Stage) -> Watch { Watch(profile: self, stage: stage) }

  package func add(_ stage: Stage, _ span: Span) {
    stages.withLock { $0[stage, default: Durations(keepsSpread: keepsSpread)].add(span) }
    parent?.add(stage, span)
  }

  package func add(_ work: DecodingWork) {
    add(.decode, work.decoding)
    add(.convert, work.converting)
  }

  /// Adds the time of a picture that another process decoded, and the overhead of the sandbox.
  package func add(_ work: DecodingWork, waitedFor span: Span) {
    // The process is not trusted: its times are at most the time that we waited.
    let decoding = work.decoding.clamped(to: span.wallNs)
    let converting = work.converting.clamped(to: span.wallNs - decoding.wallNs)
    add(DecodingWork(decoding: decoding, converting: converting))
    add(.sandbox, Span(cpuNs: span.cpuNs, wallNs: span.wallNs - decoding.wallNs - converting.wallNs))
  }

  /// Returns the wall time of all measurements of some stages, in nanoseconds.
  package func wallNs(of stages: [Stage]) -> Int64 {
    self.stages.withLock { all in stages.reduce(0) { $0 + (all[$1]?.sum.wallNs ?? 0) } }
  }

  /// The measurements of a stage.
  package struct Measured {
    package let stage: Stage
    package let count: Int
    package let sum: Span
    /// Minimum, mean, median, 75th and 95th percentile and maximum of the wall times, in nanoseconds.
    package let spread: [Double]
  }

  /// The stages that were measured, in their order.
  package var measured: [Measured] { Self.measured(stages.withLock { $0 }) }

  /// The stages that were measured since the last call, in their order.
  package func takeMeasured() -> [Measured] {
    Self.measured(
      stages.withLock { stages in
        defer { stages = [:] }
        return stages
      })
  }

  private static func measured(_ stages: [Stage: Durations]) -> [Measured] {
    Stage.allCases.compactMap { stage in
      stages[stage].map { Measured(stage: stage, count: $0.count, sum: $0.sum, spread: $0.spread) }
    }
  }

  /// The names of a spread.
  package static let spreadNames = ["min", "avg", "p50", "p75", "p95", "max"]

  /// A table with a heading: a row for each stage with its count, its CPU and wall time, and the spread of the wall times.
  package var rows: [[String]] {
    [["stage", "of a", "times", "CPU ms", "wall ms"] + Self.spreadNames]
      + measured.map { stage in
        [stage.stage.rawValue, stage.stage.unit, "\(stage.count)"]
          + [stage.sum.cpuNs, stage.sum.wallNs].map { Self.text(Double($0), digits: 1) }
          + stage.spread.map { Self.text($0) }
      }
  }

  /// Formats nanoseconds as milliseconds.
  package static func text(_ nanoseconds: Double, digits: Int = 3) -> String {
    let scale = digits == 1 ? 10 : 1_000
    let value = Int((nanoseconds / 1e6 * Double(scale)).rounded())
    return "\(value / scale).\(String(scale + value % scale).dropFirst())"
  }
}

extension Profile {
  /// CPU and wall time of a thread, in nanoseconds.
  package struct Span: Sendable, Equatable {
    package var cpuNs: Int64 = 0
    package var wallNs: Int64 = 0

    package init(cpuNs: Int64 = 0, wallNs: Int64 = 0) {
      self.cpuNs = cpuNs
      self.wallNs = wallNs
    }

    /// The thread's clocks now.
    package static var now: Span {
      Span(cpuNs: nanoseconds(of: CLOCK_THREAD_CPUTIME_ID), wallNs: nanoseconds(of: CLOCK_MONOTONIC))
    }

    func clamped(to maximum: Int64) -> Span { Span(cpuNs: min(cpuNs, maximum), wallNs: min(wallNs, maximum)) }

    package static func + (one: Span, other: Span) -> Span {
      Span(cpuNs: one.cpuNs + other.cpuNs, wallNs: one.wallNs + other.wallNs)
    }

    package static func - (one: Span, other: Span) -> Span {
      Span(cpuNs: one.cpuNs - other.cpuNs, wallNs: one.wallNs - other.wallNs)
    }
  }

  /// A stopwatch, which runs from the start.
  package struct Watch: Sendable {
    fileprivate let profile: Profile
    fileprivate let stage: Stage
    private let start = Span.now

    /// The time since the start.
    package var span: Span { .now - start }

    /// Adds the time since the start to the profile.
    package func stop() { profile.add(stage, span) }
  }

  /// A histogram of durations, exact to some three per cent.
  private struct Durations {
    private(set) var count = 0
    private(set) var sum = Span()
    private var (minimum, maximum) = (Int64.max, Int64(0))
    /// Indexed by a duration's highest bit and the four bits below it; empty if only the sum counts.
    private var buckets: [Int]

    init(keepsSpread: Bool) { buckets = keepsSpread ? [Int](repeating: 0, count: 64 * 16) : [] }

    mutating func add(_ span: Span) {
      if !buckets.isEmpty {
        let wallNs = max(16, span.wallNs)
        let bit = 63 - wallNs.leadingZeroBitCount
        buckets[bit * 16 + Int(wallNs >> (bit - 4)) & 15] += 1
      }
      count += 1
      sum = sum + span
      (minimum, maximum) = (min(minimum, span.wallNs), max(maximum, span.wallNs))
    }

    /// Minimum, mean, median, 75th and 95th percentile and maximum, in nanoseconds.
    var spread: [Double] {
      let mean = Double(sum.wallNs) / Double(count)
      return [Double(minimum), mean, quantile(0.5), quantile(0.75), quantile(0.95), Double(maximum)]
    }

    private func quantile(_ share: Double) -> Double {
      var rest = Int((share * Double(count)).rounded(.up))
      for (index, number) in buckets.enumerated() {
        rest -= number
        if rest <= 0 && number > 0 {
          let middle = (Double(16 + index % 16) + 0.5) * Double(sign: .plus, exponent: index / 16 - 4, significand: 1)
          return min(max(middle, Double(minimum)), Double(maximum))
        }
      }
      return Double(maximum)
    }
  }
}
