import FileSystem
import FrameBatches
import TestSupport
import Testing

@testable import Encoding
@testable import SegmentEncoder
@testable import Sessions

/// Reading and comparing the pictures of a session.
@Suite struct SessionPicturesTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Publishes batches of numbered pictures, one a second.
  private func session(_ batches: [[Int]]) throws -> SessionDirectory {
    let output = try OutputDirectory(scratch.path("output"))
    var second: Int64 = 0
    for (index, numbers) in batches.enumerated() {
      let folder = try NumberedFolder("batch-\(index)", in: scratch)
      for number in numbers {
        try folder.add("\(NumberedFolder.startMs + 1_000 * second).png", number)
        second += 1
      }
      try scratch.file("batch-\(index)/batch.json", Array(#"{"version":1,"session":"s"}"#.utf8))
      _ = try BatchEncoder(BatchEncoder.Options(), output: output).publish(folder.path)
    }
    #expect(output.close().isEmpty)
    return SessionDirectory(output: scratch.path("output"), session: try #require(SessionID("s")))
  }

  /// A request ends soon after its client left, however long one picture stays.
  @Test func progressIsCalledForEachManifest() throws {
    let directory = try session([Array(repeating: 7, count: 23)])
    let part = try directory.segments(of: .whole)
    #expect(part.segments.count == 5)
    var choice = PictureChoice()
    choice.changedOnly = true
    let pictures = try SessionPictures(of: directory, part, choice, from: CapturedPicture.all(of: part))
    #expect(pictures.count == 1)
    var calls = 0
    _ = try pictures.lines { calls += 1 }
    #expect(calls == 5)
  }
}
