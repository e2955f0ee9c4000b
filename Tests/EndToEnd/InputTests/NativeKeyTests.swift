import Foundation
import TestSupport
import Testing

/// Misspelt keys cause a warning. If a misspelt key may have been meant to hide something, the frame is blacked out.
@Suite struct NativeKeyTests {
  let scratch: ScratchDirectory

  init() throws {
    scratch = try ScratchDirectory()
    _ = try scratch.directory("batch")
    for number in 0...1 {
      try scratch.file(
        "batch/\(1_767_859_512_340 + 1_000 * number).jpg", Fixture("exact-1fps").bytes("000\(number).jpg"))
    }
  }

  private static let list =
    #""frames":[{"file":"./1767859512340.jpg"},{"file":"1767859513340.jpg","timeMs":1767859513340KEY}]"#

  private struct Result: Decodable {
    let warnings: [String]
  }

  /// - Returns: the warnings, and whether each of the two pictures is black.
  private func encode(_ json: String) throws -> (warnings: [String], black: [Bool]) {
    try scratch.file("batch/batch.json", Array(json.utf8))
    let output = scratch.path("output")
    try? FileManager.default.removeItem(atPath: output)
    let result = try EncoderWorker.run("encode", scratch.path("batch"), "--output", output, "--json")
    try #require(result.status == 0, "\(result.errors)")
    let receipt = try JSONDecoder().decode(Result.self, from: result.output)
    let session = try PublishedSession(output + "/batch")
    let pictures = try Pixels.decode(session.video(session.manifests[0]), width: 180, height: 320)
    return (receipt.warnings, pictures.map { $0.bytes.allSatisfy { $0 <= 8 } })
  }

  @Test(arguments: [
    "Masks", "mask", "redactions", "hiddenAreas", "blur", "Scale", "maskColour", "areas", "SENSITIVE",
  ])
  func misspeltMaskBlacksOutItsFrame(key: String) throws {
    let found = try encode(
      #"{"version":1,"# + Self.list.replacing("KEY", with: #","\#(key)":[{"x":1,"y":1,"width":9,"height":9}]"#) + "}")
    #expect(found.black == [false, true])
    #expect(found.warnings.contains { $0.contains("frames[1].\(key) is not known; it may have been meant to hide") })
    #expect(found.warnings.contains("1767859513340.jpg blacked out: the key \(key) is not known"))
  }

  @Test(arguments: [
    #""masks":[{"x":1}]"#, #""Scale":3"#, #""frame":[{"masks":[]}]"#, #""privacy":{"level":2}"#, #""isPrivate":false"#,
    #""areas":[{"x":1,"y":2,"w":3}]"#,
  ])
  func misspeltMaskOutsideOfFramesRefusesTheBatch(member: String) throws {
    for rest in ["", "," + Self.list.replacing("KEY", with: "")] {
      try scratch.file("batch/batch.json", Array(#"{"version":1,\#(member)\#(rest)}"#.utf8))
      let result = try EncoderWorker.run("encode", scratch.path("batch"), "--output", scratch.path("output"))
      #expect(result.status == 65)
      #expect(result.errors.contains("may have been meant to hide something; masks belong to frames"))
    }
  }

  @Test func otherUnknownKeysAreIgnoredWithAWarning() throws {
    let found = try encode(#"{"version":1,"timescale":9,"# + Self.list.replacing("KEY", with: #","note":1"#) + "}")
    #expect(found.black == [false, false])
    #expect(
      found.warnings == [
        "batch.json: timescale is not known, and is ignored",
        "batch.json: frames[1].note is not known, and is ignored",
      ])
  }

  @Test(arguments: ["Batch.json", "batch.json.txt", "frames/batch.json"])
  func misnamedDescriptionRefusesTheBatch(name: String) throws {
    _ = try scratch.directory("batch/frames")
    try scratch.file("batch/" + name, Array(#"{"version":1}"#.utf8))
    let result = try EncoderWorker.run("encode", scratch.path("batch"), "--output", scratch.path("output"))
    #expect(result.status == 65)
    #expect(result.errors.contains("\(name) is not batch.json"))
    // A correctly named description does not change this.
    try scratch.file("batch/batch.json", Array(#"{"version":1}"#.utf8))
    #expect(try EncoderWorker.run("encode", scratch.path("batch"), "--output", scratch.path("output")).status == 65)
  }

  @Test func linkedDescriptionRefusesTheBatch() throws {
    try scratch.file("elsewhere.json", Array(#"{"version":1}"#.utf8))
    symlink(scratch.path("elsewhere.json"), scratch.path("batch/batch.json"))
    let result = try EncoderWorker.run("encode", scratch.path("batch"), "--output", scratch.path("output"))
    #expect(result.status == 65)
    #expect(result.errors.contains("batch.json is a symbolic link"))
    // The worker refuses a hard link in a tar archive, too.
    unlink(scratch.path("batch/batch.json"))
    link(scratch.path("elsewhere.json"), scratch.path("batch/batch.json"))
    link(scratch.path("elsewhere.json"), scratch.path("batch/a.json"))
    try Tool.output(
      "tar", ["-cf", scratch.path("b.tar"), "-C", scratch.path("batch"), "a.json", "batch.json", "1767859512340.jpg"])
    let tar = try EncoderWorker.run("encode", scratch.path("b.tar"), "--output", scratch.path("output"))
    #expect(tar.status == 65)
    #expect(tar.errors.contains("batch.json is a link"))
  }

  @Test func filesInFoldersAreReported() throws {
    _ = try scratch.directory("batch/more")
    try scratch.file("batch/more/1767859514340.jpg", Fixture("exact-1fps").bytes("0002.jpg"))
    let result = try EncoderWorker.run("encode", scratch.path("batch"), "--output", scratch.path("output"))
    #expect(result.status == 0)
    #expect(result.errors.contains("refused more/1767859514340.jpg: in a folder of its own"))
  }

  @Test func errorIsReportedForTheListedFrame() throws {
    try scratch.file(
      "batch/batch.json", Array(#"{"version":1,"frames":[{"file":"a.jpg","timeMs":1767859512340}]}"#.utf8))
    let result = try EncoderWorker.run("encode", scratch.path("batch"), "--output", scratch.path("output"))
    #expect(result.status == 65)
    #expect(result.errors.contains("none of its 1 frames can be decoded; decode a.jpg: missing"))
  }
}
