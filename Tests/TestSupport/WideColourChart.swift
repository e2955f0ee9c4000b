import Foundation

/// The fixture `wide-colour`: one chart in each format with a colour profile, and the conversion of each by Little CMS.
public enum WideColourChart {
  public static let fixture = Fixture("wide-colour")
  private static let truth = Fixture("wide-colour-truth")
  public static let (width, height) = (96, 64)
  private static let patch = 16

  /// Number of frames. The truth has one file for each.
  public static let count = (try? names(in: truth.path).count) ?? 0

  /// - Returns: The CIEDE2000 difference from the truth as text, or nil if it is within the limits (mean 2, maximum 4).
  public static func differs(_ seen: Pixels, _ source: String) throws -> String? {
    let truth = try Pixels.decode(truth.path + "/\(source).png", width: width, height: height)[0]
    // The middle of each patch, without pixels that chroma of adjacent patches affects.
    let differences = (0..<height).flatMap { y in (0..<width).map { (x: $0, y: y) } }
      .filter { (4..<12).contains($0.x % patch) && (4..<12).contains($0.y % patch) }
      .map { ciede2000(Lab(seen[$0.x, $0.y]), Lab(truth[$0.x, $0.y])) }
    let mean = differences.reduce(0, +) / Double(differences.count)
    let maximum = differences.max() ?? .infinity
    return mean <= 2 && maximum <= 4 ? nil : "\(source): mean \(mean), maximum \(maximum)"
  }
}
