import Foundation

/// The reason of a batch in quarantine: `NAME.reason.json`.
public struct QuarantineReason: Decodable {
  public let format: String, batch: String, operation: String, file: String, cause: String, advice: String
}

extension TestSpool {
  /// Returns the reason of a batch in quarantine.
  public func reason(_ name: String) throws -> QuarantineReason {
    let file = URL(fileURLWithPath: "\(path)/quarantine/\(name).reason.json")
    return try JSONDecoder().decode(QuarantineReason.self, from: Data(contentsOf: file))
  }

  /// Returns the causes of all batches in quarantine, by batch.
  public func causes() throws -> [String: String] {
    let ending = ".reason.json"
    let batches = try names("quarantine").filter { $0.hasSuffix(ending) }.map { String($0.dropLast(ending.count)) }
    return try Dictionary(uniqueKeysWithValues: batches.map { ($0, try reason($0).cause) })
  }
}
