import Foundation
import TestSupport
import Testing

/// Batches whose times or names are at odds: the program says so on standard error, in the receipt, the manifest and `encode --dry-run`.
@Suite struct SilentFaultTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private static func picture(_ number: Int) throws -> [UInt8] { try Fixture("exact-1fps").bytes("000\(number).jpg") }

  /// A picture of a quarter of the others' size.
  private func thumbnail() throws -> [UInt8] {
    let path = scratch.path("thumbnail.jpg")
    try Tool.output(
      "ffmpeg", ["-v", "error", "-y", "-i", Fixture("exact-1fps").path + "/0009.jpg", "-vf", "scale=iw/4:-2", path])
    return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  private func encode(_ batch: String, _ options: String...) throws -> (PublishedSession, errors: String, json: String)
  {
    let result = try Tool.run(
      EncoderWorker.path, ["encode", batch, "-o", "out", "--session", "s", "--json"] + options, in: scratch.url)
    #expect(result.status == 0, "\(result.errors)")
    return (try PublishedSession(scratch.path("out/s")), result.errors, result.text)
  }

  /// The program showed the thumbnails, because their names are later.
  @Test func thumbnailsOfAnArchiveDoNotReplaceThePictures() throws {
    let small = try thumbnail()
    _ = try scratch.directory("day/thumbnails")
    for number in 0..<3 {
      try scratch.file("day/image-2026010808051\(number).jpg", Self.picture(number))
      try scratch.file("day/thumbnails/image-2026010808051\(number).jpg", small)
    }
    try Tool.output("tar", ["-cf", scratch.path("day.tar"), "-C", scratch.path("day"), "--sort=name", "."])
    let (session, errors, json) = try encode("day.tar", "--name-time", "image-%Y%m%d%H%M%S", "--time-zone", "UTC")
    #expect(session.manifests.map(\.width) == [180])
    #expect(
      session.manifests[0].refused.map { "\($0.source): \($0.reason)" }.first
        == "thumbnails/image-20260108080510.jpg: image-20260108080510.jpg has the same instant and lies in a higher folder"
    )
    for text in [errors, json] {
      #expect(text.contains("3 of 3 instants have more than one file, so 3 of 6 are not shown"))
      #expect(text.contains("3 of these lie in 'thumbnails': to leave that folder out, move it out of the batch"))
    }
  }

  @Test func smallerPictureIsShownWhereTheLargerOneIsBroken() throws {
    let small = try thumbnail()
    for number in 0..<2 {
      let whole = try Self.picture(number)
      try scratch.file("176785951\(number)000.jpeg", number == 0 ? whole : Array(whole.prefix(whole.count / 2)))
      try scratch.file("176785951\(number)000.jpg", small)
    }
    _ = try scratch.directory("mixed")
    for name in try names(in: scratch.path) where name.hasPrefix("17678") {
      try FileManager.default.moveItem(atPath: scratch.path(name), toPath: scratch.path("mixed/" + name))
    }
    let session = try encode("mixed").0
    #expect(session.captured.map(\.source) == ["1767859510000.jpeg", "1767859511000.jpg"])
    let reasons = session.manifests.flatMap(\.refused).map(\.reason)
    #expect(reasons.contains("1767859510000.jpeg has the same instant and is larger: 180×320, not 45×80"))
    #expect(reasons.contains { $0.hasPrefix("decode 1767859511000.jpeg: ") })
  }

  @Test func clockThatStepsBackIsInTheManifestTheReceiptAndInspect() throws {
    _ = try scratch.directory("stepped")
    let seconds = [0, 2, 4, 1, 3, 5]
    for number in seconds.indices { try scratch.file("stepped/\(number).jpg", Self.picture(number)) }
    let frames = seconds.enumerated().map {
      #"{"file":"\#($0.offset).jpg","timeMs":\#(1_767_859_512_000 + 1_000 * $0.element)}"#
    }
    try scratch.file(
      "stepped/batch.json", Array("\u{FEFF}{\"version\":1,\"frames\":[\(frames.joined(separator: ","))]}".utf8))
    let warning =
      "the clock stepped back, or the list is out of order: 2 of 6 frames come after a frame with a later time"
    let note = "comes after 2.jpg, whose time is 3000 ms later"
    let (session, errors, json) = try encode("stepped")
    #expect(session.manifests.flatMap(\.frames).compactMap(\.note) == [note])
    for text in [errors, json] { #expect(text.contains(warning) && text.contains("3.jpg \(note)")) }
    let inspected = try Tool.run(EncoderWorker.path, ["encode", "--dry-run", "stepped"], in: scratch.url)
    #expect(inspected.text.contains("  warning: \(warning)") && inspected.text.contains("3.jpg (\(note))"))
  }

  /// The values that the messages advise are accepted: an offset begins with a minus sign, and a limit is high enough.
  @Test func advisedOptionsWork() throws {
    _ = try scratch.directory("yard")
    for (name, number) in [("cam-20221106-003000.jpg", 0), ("cam-20221106-003100.jpg", 1)] {
      try scratch.file("yard/" + name, Self.picture(number))
    }
    let pattern = ["--name-time", "cam-%Y%m%d-%H%M%S"]
    let offset = try Tool.run(
      EncoderWorker.path, ["encode", "yard", "-o", "offset", "--time-zone", "-05:00"] + pattern, in: scratch.url)
    #expect(offset.status == 0 && offset.text.contains("2 frames"), "\(offset.errors)")
    // An archive is never split.
    try Tool.output("tar", ["-C", scratch.path("yard"), "-cf", scratch.path("yard.tar"), "."])
    let small = ["encode", "yard.tar", "-o", "small", "--time-zone", "-05:00"] + pattern
    let refused = try Tool.run(EncoderWorker.path, small + ["--limit", "segments=10"], in: scratch.url)
    let advice = try #require(refused.errors.firstMatch(of: /--limit (segments=\d+)/))
    #expect(refused.status == 65)
    #expect(try Tool.run(EncoderWorker.path, small + ["--limit", String(advice.1)], in: scratch.url).status == 0)
  }
}
