// The remedy for an input beyond a limit: the `--limit` that lets it through, where there is one.

/// The values of `--limit` that a picture needs.
package struct LimitAdvice: Sendable, Equatable {
  package enum Limit: String, Sendable, CaseIterable {
    case fileBytes = "file-bytes"
    case frameBytes = "frame-bytes"
    case pixels, side
  }

  package private(set) var values: [Limit: Int]

  package init(_ values: [Limit: Int]) { self.values = values }

  /// - Returns: nil for more pixels than any limit allows.
  package init?(pixels: Int) {
    guard pixels <= Limits.maximumPixels else { return nil }
    self.init([.pixels: pixels])
  }

  /// - Parameter isImage: whether the file has a format; otherwise it is a file of raw pixels.
  /// - Returns: nil for a file within the limits, or beyond what any limit allows.
  init?(fileOf size: Int, isImage: Bool, _ limits: Limits) {
    guard size <= Limits.maximumBytes else { return nil }
    self.init([:])
    if isImage, size > limits.fileBytes { values[.fileBytes] = size }
    if size > limits.frameBytes { values[.frameBytes] = size }
    if values.isEmpty { return nil }
  }

  /// Combines advice, so that it lets all inputs through; nil if there is none.
  package init?(_ all: some Sequence<LimitAdvice>) {
    values = all.reduce(into: [:]) { $0.merge($1.values, uniquingKeysWith: max) }
    if values.isEmpty { return nil }
  }

  package var text: String {
    Self.text(values.sorted { $0.key.rawValue > $1.key.rawValue }.map { ($0.key.rawValue, "\($0.value)") })
  }

  fileprivate static func text(_ options: [(name: String, value: String)]) -> String {
    "raise the limit with " + options.map { "--limit \($0.name)=\($0.value)" }.joined(separator: " ")
  }
}

extension Limits {
  /// Returns the remedy for a batch beyond a limit.
  ///
  /// - Parameters:
  ///   - option: the limit's name in `--limit`.
  ///   - needed: the value with which the batch is within the limit; nil if it is not known.
  ///   - most: the highest value that the option takes.
  ///   - isLoose: whether the batch is a folder of pictures, which `enqueue` splits.
  package static func advice(
    _ option: String, _ needed: Int? = nil, most: Int = .max, isLoose: Bool = false
  ) -> String {
    let split = isLoose ? "send it with enqueue, which splits it" : "split the batch"
    guard needed ?? 0 <= most else { return split }
    return LimitAdvice.text([(option, needed.map(String.init) ?? "NUMBER")]) + ", or " + split
  }

  /// The remedy for a folder with more pictures than a command splits.
  package static let adviceOnFolders =
    "divide the pictures between several folders, and give each as a batch with the same --session"
}

extension PixelSize {
  /// The reason why a picture of this size is beyond the limits, with the remedy; nil for a size within.
  package func excess(of limits: Limits) -> Refusal? {
    guard min(width, height) > 0 else { return nil }
    let fault = "\(width)×\(height) pixels, more than the limit of \(limits.side) a side, \(limits.pixels) in all"
    // The product of two larger sides may overflow.
    guard max(width, height) <= max(limits.side, Limits.maximumSide) else { return Refusal(fault, .scale) }
    let pixels = width * height
    guard max(width, height) > limits.side || pixels > limits.pixels else { return nil }
    var values: [LimitAdvice.Limit: Int] = [:]
    if max(width, height) > limits.side { values[.side] = max(width, height) }
    if pixels > limits.pixels { values[.pixels] = pixels }
    return Refusal(fault, .raise(LimitAdvice(values)))
  }
}
