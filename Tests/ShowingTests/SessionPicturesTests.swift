import FileSystem
import FrameBatches
import TestSupport
import Testing

@testable import Encoding
@testable import SegmentEncoder
@testable import Sessions
@testable import Showing

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
      _ = try BatchEncoder(BatchEncoder.Options(), output: output).publish(folder.path, session: "s")
    }
    #expect(output.close().isEmpty)
    return SessionDirectory(output: scratch.path("output"), session: try #require(SessionID("s")))
  }

  /// Differences of decoded pictures are large: each is reduced, and reported, before the next picture is compared.
  @Test func eachComparedPictureIsReported() throws {
    let directory = try session([[1, 2, 2, 3, 4], [4, 5]])
    var calls: [Int] = []
    let written = try SessionPictures.write(
      of: directory.path, showing: .whole, PictureChoice(), to: scratch.path("pictures.jsonl"), as: .jpeg, decoders: nil
    ) { done, _ in calls.append(done) }
    #expect(written.pictures == 7)
    // Each picture is compared, then its one manifest is read, then it is done: for one segment after the other.
    let pieces = [(0, 5), (5, 7)].map { from, to in
      Array(repeating: from, count: to - from) + (from..<to).flatMap { [$0, $0 + 1] }
    }
    #expect(calls == pieces.flatMap { $0 })
    // An error ends the work at the first picture.
    let all = CapturedPicture.all(of: try directory.segments(of: .whole))
    let walk = PictureWalk(directory, try directory.segments(of: .whole).segments)
    var compared = 0
    #expect(throws: CancellationError.self) {
      try walk.forEachSegment(of: all) { _, _ in
        compared += 1
        throw CancellationError()
      } _: { (_, _: [Int]) in
        Issue.record("the segment is not done")
      }
    }
    #expect(compared == 1)
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
