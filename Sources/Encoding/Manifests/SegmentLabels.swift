// The labels of a segment, in its manifest: "labels":[{"timeMs":1767859512840,"kind":"step","text":"Add to cart"}]. A segment has the labels from
// its start up to the next segment of its batch. The first segment also has those before the batch, and the last one those behind it.

import FrameBatches
import JSON

package enum SegmentLabels {
  /// The member of a manifest.
  package static let key = "labels"

  /// Returns the labels of a manifest; none if they cannot be read, which `verify` reports.
  package static func labels(in manifest: JSONValue) -> [Label] {
    manifest.object?[key].flatMap { try? read($0) } ?? []
  }

  /// Reads the member of a manifest.
  package static func read(_ json: JSONValue) throws(JSONError) -> [Label] {
    guard let entries = json.array, !entries.isEmpty else { throw JSONError("no labels") }
    var labels: [Label] = []
    for (index, entry) in entries.enumerated() {
      do throws(JSONError) {
        labels.append(try Label(entry))
      } catch {
        throw JSONError("label \(index): \(error)")
      }
      if index > 0, labels[index].timeMs < labels[index - 1].timeMs {
        throw JSONError("label \(index) is before the one before it")
      }
    }
    return labels
  }
}
