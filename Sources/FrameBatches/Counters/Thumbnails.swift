import FileSystem

/// Small pictures that lie beside the pictures that they show: one for each, with its number.
struct Thumbnails {
  /// The pictures.
  let pictures: [String]
  /// The small ones, refused.
  let refused: [RefusedFrame]

  /// Pairs whose sizes are compared.
  private static let pairs = 8
  /// The share of a picture's pixels that a thumbnail has at most.
  private static let share = 4
  /// Percent by which the shapes of both may differ, because their sides are whole pixels.
  private static let tolerance = 5

  /// - Returns: nil unless one of two series is of small pictures of the other.
  init?(of series: [NameSeries], in contents: any BatchContents) throws {
    guard series.count == 2 else { return nil }
    let numbers = series.map { one in (try? NameCounter(of: one.paths))?.places.map { (number: $1, path: $0) } ?? [] }
    let sorted = numbers.map { $0.sorted { ($0.number, $0.path) < ($1.number, $1.path) } }
    guard sorted[0].map(\.number) == sorted[1].map(\.number), !sorted[0].isEmpty else { return nil }
    let step = max(1, sorted[0].count / Self.pairs)
    let samples = stride(from: 0, to: sorted[0].count, by: step)
    let sizes = try samples.map { index in try sorted.map { try contents.pictureSize(of: $0[index].path) } }
    for (small, large) in [(0, 1), (1, 0)] where sizes.allSatisfy({ Self.isThumbnail($0[small], of: $0[large]) }) {
      pictures = series[large].paths
      refused = series[small].paths.map {
        RefusedFrame(source: $0, reason: "a small copy of a picture that is shown", kind: .copy)
      }
      return
    }
    return nil
  }

  private static func isThumbnail(_ small: PixelSize?, of large: PixelSize?) -> Bool {
    guard let small, let large, share * small.width * small.height <= large.width * large.height else { return false }
    let (one, other) = (small.width * large.height, large.width * small.height)
    // A side of one pixel more or less, and the tolerance.
    return 100 * abs(one - other) <= tolerance * max(one, other) + 100 * (large.width + large.height)
  }
}
