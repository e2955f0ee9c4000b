// Where the time of batches goes, by stage. Its size does not grow with the number of measurements.

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
  /// A step that is timed; in the order in which the steps happen.
  package enum Stage: String, Sendable, CaseIterable {
    /// Listing and parsing a batch, and looking whether it is published.
    case open
    /// Reading and hashing a frame's files.
    case read
    /// A frame's files to pixels, where they are decoded.
    case decode
    /// Pixels to what is coded: colours, orientation, masks, subsampling.
    case convert
    /// The overhead of the sandbox.
    case sandbox
    /// A segment's pictures to coded ones, the opening of the encoder included.
    case encode
    /// Coded pictures to a file's bytes, read back.
    case mux
    /// Hashing a segment's bytes and writing them through to the disk.
    case write
    /// A batch's segments to their names, their manifests and the session's views.
    case publish

    package var unit: String {
      switch self {
      case .open, .publish: "batch"
      case .read, .decode, .convert, .sandbox: "frame"
      case .encode, .mux, .write: "segment"
      }
    }
  }

  private let seen = Mutex<[Stage: Durations]>([:])

  package init() {}

  /// Starts a watch.
  package func start(_ stage: Stage) -> Watch { Watch(profile: self, stage: stage) }

  package func add(_ stage: Stage, _ span: Span) { seen.withLock { $0[stage, default: Durations()].add(span) } }

  /// Notes what a picture took.
  package func add(_ work: DecodingWork) {
    add(.decode, work.decoding)
    add(.convert, work.converting)
  }

  /// Notes what a picture took in another process, and what it took to have it done there.
  package func add(_ work: DecodingWork, waitedFor span: Span) {
    // Whatever it says, it took no longer than we have waited.
    let decoding = work.decoding.clamped(to: span.wallNs)
    let converting = work.converting.clamped(to: span.wallNs - decoding.wallNs)
    add(DecodingWork(decoding: decoding, converting: converting))
    add(.sandbox, Span(cpuNs: span.cpuNs, wallNs: span.wallNs - decoding.wallNs - converting.wallNs))
  }

  /// A row for each stage, behind a head: how often, milliseconds of CPU and of waiting included, and how the latter are spread.
  package var rows: [[String]] {
    let seen = seen.withLock { $0 }
    var rows = [["stage", "of a", "times", "CPU ms", "wall ms", "min", "avg", "p50", "p75", "p95", "max"]]
    for stage in Stage.allCases {
      guard let durations = seen[stage] else { continue }
      let sums = [durations.sum.cpuNs, durations.sum.wallNs].map { Self.text(Double($0), digits: 1) }
      rows.append([stage.rawValue, stage.unit, "\(durations.count)"] + sums + durations.spread.map { Self.text($0) })
    }
    return rows
  }

  /// Nanoseconds as milliseconds.
  private static func text(_ nanoseconds: Double, digits: Int = 3) -> String {
    let scale = digits == 1 ? 10 : 1_000
    let value = Int((nanoseconds / 1e6 * Double(scale)).rounded())
    return "\(value / scale).\(String(scale + value % scale).dropFirst())"
  }
}

extension Profile {
  /// Nanoseconds of a thread.
  package struct Span: Equatable {
    package var cpuNs: Int64 = 0
    package var wallNs: Int64 = 0

    package init(cpuNs: Int64 = 0, wallNs: Int64 = 0) {
      self.cpuNs = cpuNs
      self.wallNs = wallNs
    }

    /// The thread's clocks.
    package static var now: Span { Span(cpuNs: read(CLOCK_THREAD_CPUTIME_ID), wallNs: read(CLOCK_MONOTONIC)) }

    func clamped(to most: Int64) -> Span { Span(cpuNs: min(cpuNs, most), wallNs: min(wallNs, most)) }

    package static func + (one: Span, other: Span) -> Span {
      Span(cpuNs: one.cpuNs + other.cpuNs, wallNs: one.wallNs + other.wallNs)
    }

    package static func - (one: Span, other: Span) -> Span {
      Span(cpuNs: one.cpuNs - other.cpuNs, wallNs: one.wallNs - other.wallNs)
    }

    private static func read(_ clock: clockid_t) -> Int64 {
      var time = timespec()
      clock_gettime(clock, &time)
      return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
  }

  /// Runs from where it is made.
  package struct Watch {
    fileprivate let profile: Profile
    fileprivate let stage: Stage
    private let start = Span.now

    /// The time since then.
    package var span: Span { .now - start }

    /// Notes what has passed.
    package func stop() { profile.add(stage, span) }
  }

  /// How durations are spread, within some three percent.
  private struct Durations {
    private(set) var count = 0
    private(set) var sum = Span()
    private var (least, most) = (Int64.max, Int64(0))
    /// By their highest bit and the four below it.
    private var buckets = [Int](repeating: 0, count: 64 * 16)

    mutating func add(_ span: Span) {
      let wallNs = max(16, span.wallNs)
      let bit = 63 - wallNs.leadingZeroBitCount
      buckets[bit * 16 + Int(wallNs >> (bit - 4)) & 15] += 1
      count += 1
      sum = sum + span
      (least, most) = (min(least, span.wallNs), max(most, span.wallNs))
    }

    /// Minimum, mean, median, 75 and 95 percent, maximum; nanoseconds.
    var spread: [Double] {
      [Double(least), Double(sum.wallNs) / Double(count), quantile(0.5), quantile(0.75), quantile(0.95), Double(most)]
    }

    private func quantile(_ share: Double) -> Double {
      var rest = Int((share * Double(count)).rounded(.up))
      for (index, number) in buckets.enumerated() {
        rest -= number
        if rest <= 0 && number > 0 {
          let middle = (Double(16 + index % 16) + 0.5) * Double(sign: .plus, exponent: index / 16 - 4, significand: 1)
          return min(max(middle, Double(least)), Double(most))
        }
      }
      return Double(most)
    }
  }
}
