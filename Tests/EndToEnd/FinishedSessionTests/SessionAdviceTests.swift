import Foundation
import TestSupport
import Testing

/// Advice on a path that is no session names the sessions that exist.
@Suite struct SessionAdviceTests {
  private let scratch: ScratchDirectory

  /// An output with the sessions of a form with two screens, and another one.
  init() throws {
    scratch = try ScratchDirectory()
    for session in ["login1.canvas3", "login1.m1", "other"] {
      let words = ["encode", Fixture("single-frame").path, "--session", session, "--output", scratch.path("out")]
      try #require(try Tool.run(EncoderWorker.path, words).status == 0)
    }
  }

  private func run(_ words: [String]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words, in: scratch.url, verifying: false)
  }

  @Test(arguments: [
    ["stitch", "PATH", "--to", "film.mp4"], ["stitch", "PATH", "--to", "hls", "--format", "hls"],
    ["pictures", "PATH", "--at", "+0s", "--to", "a.png"], ["pictures", "--sheet", "PATH", "--to", "a.png"],
    ["verify", "PATH"],
    ["pictures", "PATH", "--to", "pictures.zip"],
    ["reencode", "PATH", "--output", "again", "--quality", "small"],
  ])
  func commandNamesTheSessionsOfAForm(command: [String]) throws {
    let sessions = "name a session that is there: out/login1.canvas3 or out/login1.m1"
    for path in ["out/login1", "out/login1/", "out/login1@tab"] {
      let result = try run(command.map { $0 == "PATH" ? path : $0 })
      #expect(result.status == 65 && (result.text + result.errors).contains(sessions), "\(result.errors)")
    }
    // The advice can be followed.
    #expect(try run(command.map { $0 == "PATH" ? "out/login1.m1" : $0 }).status == 0)
  }

  @Test func outputInPlaceOfASessionIsAnsweredWithItsSessions() throws {
    let result = try run(["stitch", "out", "--to", "film.mp4"])
    #expect(
      result.errors.contains("name a directory OUTPUT/SESSION; it holds ")
        && result.errors.contains("/out/login1.canvas3, ") && result.errors.contains("/out/other"), "\(result.errors)")
  }

  @Test func pathWithoutSessionsNearIsAnsweredWithTheForm() throws {
    let result = try run(["stitch", "nowhere/x", "--to", "film.mp4"])
    #expect(result.errors.contains("name a directory OUTPUT/SESSION"), "\(result.errors)")
  }

  @Test func deletionOfAFormsNameNamesItsSessions() throws {
    let result = try run(["delete", "login1", "--output", "out"])
    #expect(result.status == 0 && result.errors.contains("has login1.canvas3 or login1.m1: "), "\(result.errors)")
    #expect(try !run(["delete", "other", "--output", "out"]).errors.contains(" has "))
  }
}
