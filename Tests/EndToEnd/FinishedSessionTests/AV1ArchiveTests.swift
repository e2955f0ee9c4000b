import Foundation
import TestSupport
import Testing

/// An archive in AV1, as the program made them in November 2026 (`fixtures/published/archive-av1`, of the fixture `gap`).
@Suite struct AV1ArchiveTests {
  private let scratch: ScratchDirectory
  private let path: String

  init() throws {
    scratch = try ScratchDirectory()
    path = try scratch.directory("output") + "/gap"
    try FileManager.default.copyItem(atPath: Fixture("published/archive-av1").path, toPath: path)
  }

  private func run(_ words: String...) throws -> Tool.Result { try Tool.run(EncoderWorker.path, words) }

  /// Returns the picture of a session at an instant.
  private func picture(of session: PublishedSession, at timeMs: Int64) throws -> Pixels {
    let file = scratch.path("\(UUID().uuidString).png")
    let frame = try run("pictures", session.path, "--at", "\(timeMs)", "--to", file)
    try #require(frame.status == 0, "\(frame.errors)")
    return try Pixels.decode(file, width: 180, height: 320)[0]
  }

  @Test func sessionIsRead() throws {
    let verified = try run("verify", path)
    #expect(verified.status == 0, "\(verified.text)\(verified.errors)")
    for words in [
      ["pictures", path, "--to", scratch.path("pictures")],
      ["pictures", "--sheet", path, "--to", scratch.path("sheet.jpg")],
      ["pictures", path, "--to", scratch.path("changed"), "--changed-only"],
      ["stitch", path, "--to", scratch.path("film.gif")],
    ] {
      let result = try Tool.run(EncoderWorker.path, words)
      #expect(result.status == 0, "\(words): \(result.errors)")
    }
  }

  @Test func reencodeMakesH264OfTheSamePicturesAndInstants() throws {
    let archive = try PublishedSession(path)
    for (output, quality, source) in [("small", "small", path), ("again", "archive", scratch.path("small/gap"))] {
      let made = try run("reencode", source, "--output", scratch.path(output), "--quality", quality)
      try #require(made.status == 0, "\(made.errors)")
      let session = try PublishedSession(scratch.path("\(output)/gap"))
      #expect(try run("verify", session.path).status == 0)
      #expect(session.manifests.allSatisfy { $0.codec.hasPrefix("avc1.") })
      #expect(session.captured.map(\.timeMs) == archive.captured.map(\.timeMs))
      #expect(session.index.gaps == archive.index.gaps && session.index.endMs == archive.index.endMs)
      for frame in archive.captured {
        let (one, other) = (try picture(of: archive, at: frame.timeMs), try picture(of: session, at: frame.timeMs))
        #expect(one.difference(to: other) < 6)
      }
      // Players need repeats, which AV1 does not have.
      #expect(session.manifests[0].samples > archive.manifests[0].samples)
      let film = try run("stitch", session.path, "--to", scratch.path("\(output).mp4"))
      #expect(film.status == 0, "\(film.errors)")
    }
  }

  @Test func filmsAndPlaylistsNameTheRemedy() throws {
    for form in ["film.mp4", "hls"] {
      let result = try run("stitch", path, "--to", scratch.path(form), "--format", form == "hls" ? "hls" : "mp4")
      #expect(result.status == 65 && result.errors.contains("AV1, as an earlier version wrote archives"))
      #expect(result.errors.contains("make H.264 of the session with reencode --quality small"), "\(result.errors)")
    }
    let server = try RunningServer(["serve", scratch.path("output")])
    let film = try server.get("/sessions/gap/session.mp4")
    #expect(film.status == 422 && film.text.contains("reencode --quality small"), "\(film.status) \(film.text)")
  }
}
