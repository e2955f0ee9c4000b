import FrameBatches
import JSON

/// The numbers of labels by their kinds and their levels: `{"kinds":{"error":3,"step":12},"levels":{"error":3}}`.
package struct LabelCounts: Sendable, Equatable {
  package private(set) var kinds: [String: Int] = [:]
  package private(set) var levels: [String: Int] = [:]

  /// The kinds that are counted by their names. All others are counted together: producers make any number of them.
  private static let named: Set = [
    Label.Kind.step, Label.Kind.caption, Label.Kind.log, Label.Kind.error, Label.Kind.key, Label.Kind.page,
    Label.Kind.mark,
  ]
  private static let others = "other"
  private static let levelNames = Set(Label.Level.allCases.map(\.rawValue))

  package init() {}

  package init(_ labels: [Label]) {
    for label in labels { count(kind: label.kind, level: label.level?.rawValue) }
  }

  /// Counts the labels of a manifest, without reading all of each.
  package init(ofManifest json: JSONValue) {
    for label in json.object?[SegmentLabels.key]?.array ?? [] {
      guard let kind = label.object?["kind"]?.string else { continue }
      count(kind: kind, level: label.object?["level"]?.string)
    }
  }

  private mutating func count(kind: String, level: String?) {
    kinds[Self.named.contains(kind) ? kind : Self.others, default: 0] += 1
    if let level, Self.levelNames.contains(level) { levels[level, default: 0] += 1 }
  }

  package var isEmpty: Bool { kinds.isEmpty && levels.isEmpty }

  /// The number of labels of the kind `error`.
  package var errors: Int { kinds[Label.Kind.error] ?? 0 }

  package mutating func add(_ other: LabelCounts) {
    kinds.merge(other.kinds, uniquingKeysWith: +)
    levels.merge(other.levels, uniquingKeysWith: +)
  }

  /// Takes away counts that were added.
  package mutating func remove(_ other: LabelCounts) {
    func left(_ counts: [String: Int], without others: [String: Int]) -> [String: Int] {
      counts.merging(others, uniquingKeysWith: -).filter { $0.value > 0 && counts[$0.key] != nil }
    }
    (kinds, levels) = (left(kinds, without: other.kinds), left(levels, without: other.levels))
  }

  package var json: JSONValue {
    func object(_ counts: [String: Int]) -> JSONValue { .object(counts.mapValues { .number($0) }) }
    return .object(["kinds": object(kinds)].merging(levels.isEmpty ? [:] : ["levels": object(levels)]) { $1 })
  }

  /// - Parameter json: nil for none.
  package init(_ json: JSONValue?) throws(JSONError) {
    func counts(_ key: String, _ names: Set<String>) throws(JSONError) -> [String: Int] {
      var counts: [String: Int] = [:]
      for (name, value) in json?.object?[key]?.object ?? [:] {
        guard names.contains(name), let count = value.integer, (1...Int64(1) << 42).contains(count) else {
          throw JSONError("\(key): no counts")
        }
        counts[name] = Int(count)
      }
      return counts
    }
    kinds = try counts("kinds", Self.named.union([Self.others]))
    levels = try counts("levels", Self.levelNames)
  }
}
