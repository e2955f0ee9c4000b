import Foundation
import TestSupport
import Testing

/// The pages of `serve` in a browser. The tests themselves are Python's, in Tests/player, each class for itself.
@Suite(.serialized) struct PlayerTests {
  private static let groups = [
    "test_player.Frames", "test_player.Playing", "test_player.Damage", "test_player.Undecodable",
    "test_player.Controls", "test_player.Guest", "test_player.Long", "test_player.Playlist", "test_list",
    "test_accessible",
  ]

  @Test(arguments: groups) func pagesDoWhatTheyPromise(group: String) throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    // Debian's own Python, which has its selenium.
    let result = try Tool.run(
      "/usr/bin/python3", ["-m", "unittest", group], in: root.appendingPathComponent("player"),
      environment: ["ENCODER_WORKER": EncoderWorker.path, "PYTHONDONTWRITEBYTECODE": "1"])
    #expect(result.status == 0, "\(result.errors)")
  }

  /// So that none is forgotten above.
  @Test func everyTestOfThePagesIsRun() throws {
    let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("player")
    for file in try names(in: directory.path) where file.hasPrefix("test_") {
      let module = String(file.dropLast(3))
      let text = try String(contentsOf: directory.appendingPathComponent(file), encoding: .utf8)
      for line in text.split(separator: "\n") where line.hasPrefix("class ") && line.hasSuffix("(PageTest):") {
        let name = line.dropFirst(6).prefix { $0 != "(" }
        #expect(Self.groups.contains(module) || Self.groups.contains("\(module).\(name)"))
      }
    }
  }
}
