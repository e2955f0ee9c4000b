import FrameBatches

/// Decides which traces are exported, as `OTEL_TRACES_SAMPLER` says.
package struct TraceSampler: Sendable, Equatable {
  private enum Root: Equatable {
    case always, never
    /// From 0 to 1.
    case ratio(Double)
  }

  private let followsParent: Bool
  private let root: Root

  /// - Parameters:
  ///   - name: nil for the default, `parentbased_always_on`.
  ///   - argument: the ratio, for the samplers that have one; nil for 1.
  /// - Returns: nil for an unknown name, or an argument that is no ratio.
  init?(name: String?, argument: String?) {
    let name = name ?? "parentbased_always_on"
    let prefix = "parentbased_"
    followsParent = name.hasPrefix(prefix)
    switch followsParent ? String(name.dropFirst(prefix.count)) : name {
    case "always_on": root = .always
    case "always_off": root = .never
    case "traceidratio":
      guard let ratio = Double(argument ?? "1"), (0...1).contains(ratio) else { return nil }
      root = .ratio(ratio)
    default: return nil
    }
  }

  /// Whether a trace is exported.
  ///
  /// - Parameter parent: the step of a producer that it continues; nil if it begins here.
  func samples(_ traceID: String, parent: TraceParent?) -> Bool {
    if followsParent, let parent { return parent.isSampled }
    switch root {
    case .always: return true
    case .never: return false
    case .ratio(let ratio):
      // The last 56 bits of an ID are random in every version of the standard.
      guard let random = UInt64(traceID.suffix(14), radix: 16) else { return false }
      return random < UInt64(ratio * Double(1 << 56 as UInt64))
    }
  }
}
