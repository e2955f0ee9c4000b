import Foundation
import TestSupport
import Testing

/// The suppressions of ThreadSanitizer name types and functions that exist. A renamed type therefore keeps its
/// suppression.
@Suite struct SuppressionTests {
  @Test func eachSuppressionNamesATypeWithAMutex() throws {
    let list = Fixture.root.appendingPathComponent("Tests/sanitizers/tsan.supp")
    let entries = try String(contentsOf: list, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("#") }
    let sources = try Self.sources()
    #expect(!entries.isEmpty)
    for entry in entries {
      // A part of a mangled name: the length and name of a type, its kind, and optionally the length and name of a
      // function.
      let parts = try #require(
        entry.wholeMatch(of: /race:(\d+)([A-Za-z]+)(?:C|V)(?:(\d+)([A-Za-z]+))?/), "\(entry)")
      let type = String(parts.2)
      #expect(Int(parts.1) == type.count, "\(entry)")
      let source = try #require(
        sources.first { $0.firstRange(of: try! Regex("(?:class|struct) \(type)\\b")) != nil }, "\(entry)")
      #expect(source.contains("Mutex"), "\(entry)")
      if let length = parts.3, let function = parts.4 {
        #expect(Int(length) == function.count, "\(entry)")
        #expect(source.contains("func \(function)("), "\(entry)")
      }
    }
  }

  /// Returns the texts of all Swift files below Sources.
  private static func sources() throws -> [String] {
    let root = Fixture.root.appendingPathComponent("Sources")
    let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path).filter { $0.hasSuffix(".swift") }
    return try paths.map { try String(contentsOf: root.appendingPathComponent($0), encoding: .utf8) }
  }
}
