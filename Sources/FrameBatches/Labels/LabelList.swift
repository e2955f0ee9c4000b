import JSON

/// The labels of a batch, up to its limits, and the number of those that are left out.
package struct LabelList: Sendable {
  /// Maximum number of labels of a batch, and maximum bytes of their texts and data.
  package static let (maximumCount, maximumBytes) = (10_000, 1 << 20)

  /// In the producer's order.
  package private(set) var labels: [Label] = []
  private var bytes = 0
  /// The number of labels that are left out, and the reason of the first.
  private var omitted = 0
  private var reason = ""

  package init() {}

  package var isEmpty: Bool { labels.isEmpty && omitted == 0 }

  package mutating func append(_ label: Label) {
    guard labels.count < Self.maximumCount else {
      return omit("a batch has at most \(Self.maximumCount)")
    }
    guard bytes + label.size <= Self.maximumBytes else {
      return omit("those of a batch have at most \(Self.maximumBytes) bytes")
    }
    labels.append(label)
    bytes += label.size
  }

  package mutating func omit(_ reason: String, count: Int = 1) {
    guard count > 0 else { return }
    if omitted == 0 { self.reason = reason }
    omitted += count
  }

  /// Adds the entries of a list.
  ///
  /// - Parameter name: of the list, for messages.
  mutating func add(_ entries: [JSONValue], of name: String) {
    for (index, entry) in entries.enumerated() {
      do throws(JSONError) {
        append(try Label(entry))
      } catch {
        omit("\(name)[\(index)]: \(error)")
      }
    }
  }

  mutating func add(_ other: LabelList) {
    for label in other.labels { append(label) }
    omit(other.reason, count: other.omitted)
  }

  /// Gives all labels other times.
  mutating func move(_ time: (Int64) -> Int64) { labels = labels.compactMap { $0.at(time) } }

  /// Returns the labels that may be in a batch, in the order of their times.
  mutating func takeSorted(within instants: Range<Int64>) -> [Label] {
    let usable = labels.filter { instants.contains($0.timeMs) && ($0.endMs.map(instants.contains) ?? true) }
    if let first = labels.first(where: { !instants.contains($0.timeMs) }) {
      omit("its time is \(first.timeMs)", count: labels.count - usable.count)
    } else {
      omit("its end is not between 2001 and 2100", count: labels.count - usable.count)
    }
    return usable.inOrder
  }

  /// Tells the operator of labels that are left out; nil if none is.
  package var warning: String? {
    guard omitted > 0 else { return nil }
    return omitted == 1 ? "1 label is left out: \(reason)" : "\(omitted) labels are left out; the first one: \(reason)"
  }
}

extension [Label] {
  /// As `batch.json` and manifests have them.
  package var json: JSONValue { .array(map(\.json)) }

  /// Returns, for each start, the labels up to the next one. The first list also has those before it.
  ///
  /// - Parameter starts: in unix milliseconds, in order. The labels are in the order of their times.
  package func divided(at starts: [Int64]) -> [[Label]] {
    var rest = self[...]
    return starts.indices.map { index in
      guard index + 1 < starts.count else { return Array(rest) }
      let own = rest.prefix { $0.timeMs < starts[index + 1] }
      rest = rest.dropFirst(own.count)
      return Array(own)
    }
  }

  /// Ordered by time; those of one instant stay in their order.
  package var inOrder: [Label] {
    enumerated().sorted { ($0.element.timeMs, $0.offset) < ($1.element.timeMs, $1.offset) }.map(\.element)
  }
}
