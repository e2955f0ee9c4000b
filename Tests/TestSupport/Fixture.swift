import Foundation

/// A batch that tests read.
public struct Fixture: Sendable, CustomStringConvertible {
  /// The fixture's name, which is also its session.
  public let name: String
  public let path: String

  public var description: String { name }

  public static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// A fixture in `fixtures/`.
  public init(_ name: String) {
    self.name = name
    path = Self.root.appendingPathComponent("fixtures/\(name)").path
  }

  /// A fixture from any file.
  public init(file path: String) { (name, self.path) = (path, path) }

  private init(corpus name: String, path: String) {
    self.name = name
    self.path = path
  }

  /// The test batches in `fixtures/`.
  public static let all = [
    "exact-1fps", "jittered", "gap", "rotation", "odd-size", "corrupt-frames", "single-frame", "irregular-3fps",
    "on-change", "masks", "colour-bars",
  ].map { Fixture($0) }

  /// One fixture of each timing and size, for tests that start dozens of programs per fixture. The full test uses all
  /// fixtures.
  public static let sample = Extent.of(
    all.filter { ["exact-1fps", "gap", "rotation", "odd-size", "on-change"].contains($0.name) }, full: all)

  /// Real sessions: each directory in SESSION_CORPUS is a session with its frames in `jpg/`. Empty unless
  /// SESSION_CORPUS is set, so every clone runs the same tests. `make test-corpus` sets it.
  public static let corpus: [Fixture] = {
    guard let corpus = ProcessInfo.processInfo.environment["SESSION_CORPUS"] else { return [] }
    let sessions = (try? names(in: corpus)) ?? []
    return sessions.map { Fixture(corpus: $0, path: "\(corpus)/\($0)/jpg") }
  }()

  /// Returns the bytes of a single-file fixture.
  public func bytes() throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

  /// Returns the bytes of a file in the fixture.
  public func bytes(_ file: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(fileURLWithPath: path + "/" + file)))
  }
}
