@testable import Encoding
@testable import FrameBatches
@testable import JSON

/// Reads a file of labels, and the labels of a manifest.
enum LabelFuzzing {
  static func read(_ bytes: [UInt8]) {
    if let file = try? LabelFile(bytes, name: "labels") {
      var list = file.labels(from: 1_767_859_512_340).0
      check(list.takeSorted(within: FuzzTarget.limits.instants))
    }
    if let labels = try? SegmentLabels.read(JSONParser.parse(bytes)) {
      require((try? SegmentLabels.read(labels.json)) == labels, "the same labels after writing")
    }
  }

  static func check(_ labels: [Label]) {
    require(labels.count <= LabelList.maximumCount, "labels, within limits")
    require(labels.reduce(0) { $0 + $1.size } <= LabelList.maximumBytes, "bytes of labels, within limits")
    require(zip(labels, labels.dropFirst()).allSatisfy { $0.timeMs <= $1.timeMs }, "labels in order")
    for label in labels {
      require(!label.text.isEmpty && label.text.utf8.count <= Label.textBytes, "a text, within limits")
      require(label.endMs.map { $0 > label.timeMs } ?? true, "an end behind the start")
      require((try? Label(label.json)) == label, "the same label after writing")
    }
  }
}
