// The remedy for an input beyond a limit of pictures: the `--limit` that lets it through, where there is one.

/// The values of `--limit` that an input needs.
package struct LimitAdvice {
  private var values: [String: Int]

  private static let names = ["file-bytes", "frame-bytes", "pixels", "side"]
  private static let opening = "raise the limit with "

  init(_ values: [String: Int]) { self.values = values }

  /// - Returns: nil for more pixels than any limit allows.
  package init?(pixels: Int) {
    guard pixels <= Limits.maximumPixels else { return nil }
    self.init(["pixels": pixels])
  }

  /// Combines the advice at the end of several reasons; nil if there is none.
  package init?(in reasons: some Sequence<String>) {
    values = [:]
    for reason in reasons {
      guard let start = reason.firstRange(of: Self.opening)?.upperBound else { continue }
      for part in reason[start...].split(separator: " ") {
        let words = part.split(separator: "=")
        guard words.count == 2, Self.names.contains(String(words[0])), let value = Int(words[1]) else { continue }
        values[String(words[0])] = max(value, values[String(words[0])] ?? 0)
      }
    }
    if values.isEmpty { return nil }
  }

  package var text: String {
    Self.opening
      + values.sorted { $0.key > $1.key }.map { "--limit \($0.key)=\($0.value)" }.joined(separator: " ")
  }

  /// Adds the options to the reason of a file that is too large, `<bytes> bytes, more than the limit of <limit>`. Returns other
  /// reasons as they are.
  static func completing(_ reason: String, isImage: Bool, _ limits: Limits) -> String {
    guard reason.contains(" bytes, more than the limit of "), let size = Int(reason.prefix { $0.isNumber }),
      size <= Limits.maximumBytes
    else { return reason }
    var values: [String: Int] = [:]
    if isImage, size > limits.fileBytes { values["file-bytes"] = size }
    if size > limits.frameBytes { values["frame-bytes"] = size }
    return values.isEmpty ? reason : "\(reason); \(LimitAdvice(values).text)"
  }
}

extension PixelSize {
  /// The reason why a picture of this size is beyond the limits, with the remedy; nil for a size within.
  package func excess(of limits: Limits) -> String? {
    guard min(width, height) > 0 else { return nil }
    func fault(_ remedy: String) -> String {
      "\(width)×\(height) pixels, more than the limit of \(limits.side) a side, \(limits.pixels) in all; \(remedy)"
    }
    // The product of two larger sides may overflow.
    guard max(width, height) <= max(limits.side, Limits.maximumSide) else {
      return fault("scale it to at most \(Limits.maximumSide) a side")
    }
    let pixels = width * height
    guard max(width, height) > limits.side || pixels > limits.pixels else { return nil }
    var values: [String: Int] = [:]
    if max(width, height) > limits.side { values["side"] = max(width, height) }
    if pixels > limits.pixels { values["pixels"] = pixels }
    return fault(LimitAdvice(values).text)
  }
}
