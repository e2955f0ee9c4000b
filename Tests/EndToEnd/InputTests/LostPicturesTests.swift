import Foundation
import TestSupport
import Testing

/// `encode`, `film` and `encode --dry-run` of batches of which most pictures cannot be shown.
@Suite struct LostPicturesTests {
  private let scratch: ScratchDirectory
  private let folder: NumberedFolder

  init() throws {
    scratch = try ScratchDirectory()
    folder = try NumberedFolder("hall", in: scratch)
    try folder.add(at: [0, 1_000])
    for number in 2..<6 { try folder.add("shot \(number).png", number) }
  }

  private static let cause = "4 of 6 pictures would not be shown; 4 of these, the first shot 2.png: "

  @Test func encodePublishesNothingUntilThatIsAccepted() throws {
    let words = ["encode", folder.path, "--output", scratch.path("out"), "--json"]
    let refused = try Tool.run(EncoderWorker.path, words)
    #expect(refused.status == 65 && refused.errors.contains(Self.cause), "\(refused.errors)")
    #expect(refused.errors.contains("or take it as it is with --accept") && refused.text.contains("--accept"))
    #expect(try !names(in: scratch.path("out")).contains("hall"))
    let accepted = try Tool.run(EncoderWorker.path, words + ["--accept"])
    #expect(accepted.status == 0, "\(accepted.errors)")
    #expect(try PublishedSession(scratch.path("out/hall")).captured.count == 2)
  }

  @Test func filmIsMadeOnlyIfThatIsAccepted() throws {
    let film = scratch.path("film.mp4")
    let refused = try EncoderWorker.run("film", folder.path, "--to", film)
    #expect(refused.status == 65 && refused.errors.contains(Self.cause), "\(refused.errors)")
    #expect(!FileManager.default.fileExists(atPath: film))
    #expect(try EncoderWorker.run("film", folder.path, "--to", film, "--accept").status == 0)
    #expect(try ShownFilm(film).entries.count == 2)
  }

  @Test func inspectSaysSo() throws {
    let result = try EncoderWorker.run("encode", "--dry-run", folder.path)
    #expect(
      result.status == 65 && result.text.contains("would be quarantined: encode hall: " + Self.cause), "\(result.text)")
    #expect(result.text.contains("hall: plain, session hall, 2 frames"))
  }
}
