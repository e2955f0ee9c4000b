import Foundation

/// The batches that tests work on.
public struct Fixture: Sendable, CustomStringConvertible {
  /// Also the session.
  public let name: String
  public let path: String

  public var description: String { name }

  public static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// A case of `fixtures/`.
  public init(_ name: String) {
    self.name = name
    path = Self.root.appendingPathComponent("fixtures/\(name)").path
  }

  /// Any file.
  public init(file path: String) { (name, self.path) = (path, path) }

  private init(corpus name: String, path: String) {
    self.name = name
    self.path = path
  }

  /// All of `fixtures/`.
  public static let all = [
    "exact-1fps", "jittered", "gap", "rotation", "odd-size", "corrupt-frames", "single-frame", "irregular-3fps",
    "on-change", "masks", "colour-bars",
  ].map { Fixture($0) }

  /// One of each kind of timing and size, where each fixture takes dozens of other programs; all of them in full.
  public static let sample = Extent.of(
    all.filter { ["exact-1fps", "gap", "rotation", "odd-size", "on-change"].contains($0.name) }, full: all)

  /// Real sessions: a directory for each in SESSION_CORPUS, with its frames in `jpg/`. None unless that is set, so that
  /// every clone runs the same tests; `make test-corpus` sets it.
  public static let corpus: [Fixture] = {
    guard let corpus = ProcessInfo.processInfo.environment["SESSION_CORPUS"] else { return [] }
    let sessions = (try? names(in: corpus)) ?? []
    return sessions.map { Fixture(corpus: $0, path: "\(corpus)/\($0)/jpg") }
  }()

  /// All of a fixture that is one file.
  public func bytes() throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

  /// One of its files.
  public func bytes(_ file: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(fileURLWithPath: path + "/" + file)))
  }
}
