import Foundation
import JSON

@testable import Sessions

/// A segment's manifest with all its members. A test compares them, or edits them and gives the file a valid digest, as an
/// attacker would.
package struct SegmentManifestJSON {
  package var members: [String: JSONValue]

  package init(_ path: String) throws {
    let text = try Data(contentsOf: URL(fileURLWithPath: path))
    guard let members = try JSONParser.parse(Array(text)).object else { throw Tool.Failure("\(path): not an object") }
    self.members = members
  }

  package subscript(_ key: String) -> JSONValue? {
    get { members[key] }
    set { members[key] = newValue }
  }

  /// The frames, each with all its members.
  package var frames: [JSONValue] {
    get throws { try JSONValue.object(members).required("frames", .array) }
  }

  /// Writes the manifest to a file, with a valid digest.
  package func write(to path: String) throws {
    try Data(SegmentManifest.text(of: .object(members))).write(to: URL(fileURLWithPath: path))
  }
}
