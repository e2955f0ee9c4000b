import Foundation
import TestSupport
import Testing

/// Two batches of a session share a file. Its picture stays in the memory that the worker shares with the decoder.
@Suite struct SharedFileTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  @Test func fileThatEndsABatchIsNotDecodedAgainForTheNextOne() throws {
    for (batch, pictures) in [("s@1", [12: 0, 13: 1]), ("s@2", [14: 1, 15: 2])] {
      let directory = try scratch.directory(batch)
      for (second, picture) in pictures {
        try FileManager.default.copyItem(
          atPath: Fixture("exact-1fps").path + "/000\(picture).jpg", toPath: directory + "/17678595\(second)000.jpg")
      }
    }
    func decodedPictures(_ output: String, _ batches: String...) throws -> Substring? {
      let worker = try Tool.run(
        EncoderWorker.path,
        ["encode"] + batches.map(scratch.path)
          + ["--output", scratch.path(output), "--jobs", "1", "--sandbox", "require", "--profile"])
      #expect(worker.status == 0, "\(worker.errors)")
      let row = worker.errors.split(separator: "\n").first { $0.hasPrefix("decode ") }
      return row?.split(separator: " ")[2]
    }
    #expect(try decodedPictures("together", "s@1", "s@2") == "3")
    #expect(try decodedPictures("apart", "s@1") == "2")
    #expect(try decodedPictures("apart", "s@2") == "2")
    let (together, apart) = (try snapshot(of: scratch.path("together")), try snapshot(of: scratch.path("apart")))
    #expect(together.mapValues(\.bytes) == apart.mapValues(\.bytes))
    #expect(together.keys.count { $0.hasSuffix(".mp4") } == 2)
  }
}
