import ArgumentParser
import FileSystem
import FrameBatches
import SegmentEncoder
import WorkQueues

/// A limit that an operator sets, as `NAME=VALUE`.
struct LimitSetting: ExpressibleByArgument {
  private let key: WritableKeyPath<Limits, Int> & Sendable
  private let value: Int

  /// The limits by name, with their ranges.
  private static let known: [String: (WritableKeyPath<Limits, Int> & Sendable, ClosedRange<Int>)] = [
    "file-bytes": (\.fileBytes, 1...Limits.maximumBytes), "frame-bytes": (\.frameBytes, 1...Limits.maximumBytes),
    "side": (\.side, 1...Limits.maximumSide), "pixels": (\.pixels, 1...Limits.maximumPixels),
    "frames": (\.frames, 1...100_000),
    "layers": (\.layers, 1...1_024), "entries": (\.entries, 1...1_000_000),
    "unpacked-bytes": (\.unpackedBytes, 1...1 << 40), "ratio": (\.ratio, 1...1_000_000),
    "json-bytes": (\.jsonBytes, 1...1 << 26), "segments": (\.segments, 1...1_000_000),
    "touches": (\.touches, 1...100_000),
  ]

  static let names = known.keys.sorted().joined(separator: ", ")

  init?(argument: String) {
    let parts = argument.split(separator: "=", omittingEmptySubsequences: false)
    guard parts.count == 2, let (key, range) = Self.known[String(parts[0])],
      let value = parts[0].hasSuffix("bytes") ? ByteCount.bytes(parts[1]) : Int(parts[1]), range.contains(value)
    else { return nil }
    self.key = key
    self.value = value
  }

  fileprivate func apply(to limits: inout Limits) { limits[keyPath: key] = value }
}

/// Options for limits; the same for every command that reads batches.
struct LimitOptions: ParsableArguments {
  @Option(
    help: .setting(
      "Change a limit: \(LimitSetting.names). May be given several times.", valueName: "name=value"))
  var limit: [LimitSetting] = []

  var limits: Limits {
    var limits = Limits()
    limits.now = { WallClock.nowMs }
    for setting in limit { setting.apply(to: &limits) }
    return limits
  }
}
