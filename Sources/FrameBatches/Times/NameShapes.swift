/// Names by their shapes: a pattern that reads a name reads each name of its shape. So a form is counted over all names of a large
/// folder at the cost of a few.
struct NameShapes {
  /// An example of each shape, and the number of names that have it; the most frequent first.
  let examples: [(path: String, count: Int)]
  /// Whether there are more shapes than ``examples`` has.
  let isCut: Bool

  /// Shapes that are tried. Names of recorders have a few; random ones have each their own.
  private static let most = 256

  init(of paths: [String]) {
    var shapes: [[UInt8]: (first: Int, count: Int)] = [:]
    for (index, path) in paths.enumerated() {
      let shape = path.utf8.map { (48...57).contains($0) ? UInt8(ascii: "0") : $0 }
      shapes[shape, default: (index, 0)].count += 1
    }
    let sorted = shapes.values.sorted { ($1.count, $0.first) < ($0.count, $1.first) }
    isCut = sorted.count > Self.most
    examples = sorted.prefix(Self.most).map { (paths[$0.first], $0.count) }
  }

  /// Returns the number of names for which a condition on their shapes holds.
  func count(where condition: (String) -> Bool) -> Int {
    examples.reduce(0) { $0 + (condition($1.path) ? $1.count : 0) }
  }
}
