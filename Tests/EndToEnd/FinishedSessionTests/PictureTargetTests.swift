import Foundation
import TestSupport
import Testing

/// Where `pictures` writes, and in which forms.
@Suite struct PictureTargetTests: PicturesSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: scratch.path(name))) }

  // MARK: the forms

  @Test func everyFormHasThePicturesOfFrame() throws {
    let session = try EncoderWorker.encode(Fixture("rotation"), into: scratch)
    for format in ["jpg", "png"] {
      let folder = try pictures(session.path, to: format, ["--image-format", format])
      let inline = try pictures(session.path, to: format + ".jsonl", ["--image-format", format])
      try #require(folder.count == 8 && inline.count == 8)
      let zipped = try EncoderWorker.run(
        "pictures", session.path, "--to", scratch.path("\(format).zip"), "--image-format", format)
      #expect(zipped.status == 0)
      try Tool.output(
        Tool.python,
        [
          "-c", "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])",
          scratch.path("\(format).zip"), scratch.path("unpacked-" + format),
        ])
      #expect(
        try names(in: scratch.path(format)) == (folder.map(\.file) + ["pictures.jsonl"]).sorted())
      #expect(try names(in: scratch.path("unpacked-" + format)) == names(in: scratch.path(format)))
      for (line, other) in zip(folder, inline) {
        let at = ["--at", "\(line.unixMs)", "--to", scratch.path("frame." + format)]
        let shown = try Tool.run(EncoderWorker.path, ["pictures", session.path] + at)
        #expect(shown.status == 0, "\(shown.errors)")
        let image = try bytes("frame." + format)
        #expect(try bytes("\(format)/\(line.file)") == image && bytes("unpacked-\(format)/\(line.file)") == image)
        let kind = format == "png" ? "png" : "jpeg"
        #expect(other.image == "data:image/\(kind);base64,\(image.base64EncodedString())")
        #expect((line.width, line.height) == (other.width, other.height) && line.file == other.file)
      }
    }
  }

  /// The names are capture times that `encode` reads.
  @Test func folderIsABatch() throws {
    let session = try EncoderWorker.encode(Fixture("jittered"), into: scratch)
    let found = try pictures(session.path)
    try FileManager.default.removeItem(atPath: scratch.path("pictures/pictures.jsonl"))
    let result = try EncoderWorker.run(
      "encode", scratch.path("pictures"), "--output", scratch.path("again"), "--session", "again")
    try #require(result.status == 0, "\(result.errors)")
    #expect(try PublishedSession(scratch.path("again/again")).captured.map(\.timeMs) == found.map(\.unixMs))
  }

  // MARK: the target

  @Test func targetThatIsTakenIsRefused() throws {
    let session = try EncoderWorker.encode(Fixture("single-frame"), into: scratch)
    try scratch.file("full.txt", [1])
    _ = try scratch.directory("full")
    try scratch.file("full/note", [1])
    _ = try scratch.directory("empty")
    for (target, message) in [
      ("full", "it is no empty directory"), ("full.txt", "it is no empty directory"),
      ("output/single-frame/pictures", "a published session"), ("none/pictures", "no directory"),
    ] {
      let result = try EncoderWorker.run("pictures", session.path, "--to", scratch.path(target))
      #expect(result.status == 64 && result.errors.contains(message), "\(target): \(result.errors)")
    }
    #expect(try pictures(session.path, to: "empty").count == 1)
    #expect(try names(in: scratch.path) == ["empty", "full", "full.txt", "output"])
    #expect(try names(in: scratch.path("full")) == ["note"])
  }

  /// `delete` removes a session, and no pictures beside it.
  @Test func targetInTheOutputOfTheSessionIsRefused() throws {
    let session = try EncoderWorker.encode(Fixture("single-frame"), into: scratch)
    _ = try scratch.directory("output/own")
    _ = try scratch.directory("output-2")
    try FileManager.default.createSymbolicLink(
      atPath: scratch.path("link"), withDestinationPath: scratch.path("output"))
    let before = try names(in: scratch.path("output"))
    for target in [
      "output/pictures", "output/p.zip", "output/p.jsonl", "output/own/pictures", "link/pictures", "output/own",
    ] {
      let result = try EncoderWorker.run("pictures", session.path, "--to", scratch.path(target))
      #expect(result.status == 64 && result.errors.contains("in the output of the session"), "\(result.errors)")
    }
    // A path from the working directory.
    let words = ["pictures", "output/single-frame", "--to", "output/pictures"]
    #expect(try Tool.run(EncoderWorker.path, words, in: scratch.url, verifying: false).status == 64)
    #expect(try names(in: scratch.path("output")) == before && names(in: scratch.path("output/own")) == [])
    #expect(try pictures(session.path, to: "output-2/pictures").count == 1)
  }

  /// An output may have files of the operator: they are no sessions.
  @Test func plainFilesBesideSessionsAreTolerated() throws {
    _ = try EncoderWorker.encode(Fixture("single-frame"), into: scratch)
    _ = try scratch.directory("output/own")
    try scratch.file("output/own/p.jpg", [1])
    try scratch.file("output/p.jsonl", [1])
    let verified = try EncoderWorker.run("verify", scratch.path("output"), "--json")
    #expect(verified.status == 0 && verified.text.contains("single-frame"), "\(verified.text)")
    #expect(verified.text.split(separator: "\n").count == 1)
    let server = try RunningServer(["serve", scratch.path("output")])
    let list = String(decoding: try server.get("/sessions.json").body, as: UTF8.self)
    #expect(list.contains("\"single-frame\"") && !list.contains("\"own\""))
    #expect(server.stop() == 0)
  }

  /// Pictures are written beside their directory first, and that place may be the output.
  @Test func temporaryDirectoryIsNotTheOutput() throws {
    let session = try EncoderWorker.encode(Fixture("single-frame"), into: scratch)
    try FileManager.default.moveItem(atPath: scratch.path("output"), toPath: scratch.path("pictures.part"))
    let before = try names(in: scratch.path("pictures.part"))
    let path = scratch.path("pictures.part/single-frame")
    let result = try EncoderWorker.run("pictures", path, "--to", scratch.path("pictures"))
    #expect(result.status == 64 && result.errors.contains("in the output of the session"), "\(result.errors)")
    #expect(try names(in: scratch.path("pictures.part")) == before)
    _ = session
  }

  @Test func targetInASessionOrAmongFilesOfWorkersIsRefused() throws {
    let session = try EncoderWorker.encode(Fixture("single-frame"), into: scratch)
    // A session whose index is gone, and a deleted one.
    let other = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    _ = try EncoderWorker.encode(Fixture("jittered"), into: scratch)
    try #require(try EncoderWorker.run("delete", "jittered", "--output", scratch.path("output")).status == 0)
    try FileManager.default.removeItem(atPath: other.path + "/session.json")
    _ = try scratch.directory("output/single-frame/sub")
    let before = try names(in: scratch.path("output"))
    for (target, message) in [
      ("output/single-frame/pictures", "published session"), ("output/single-frame/p.zip", "published session"),
      ("output/single-frame/sub/p.jsonl", "published session"), ("output/gap/pictures", "output of the session"),
      ("output/gap/p.zip", "output of the session"), ("output/.deleted/p.zip", "output of the session"),
      ("output/.p", "output of the session"), ("output/jittered", "output of the session"),
    ] {
      let result = try EncoderWorker.run("pictures", session.path, "--to", scratch.path(target))
      #expect(result.status == 64 && result.errors.contains(message), "\(target): \(result.errors)")
    }
    #expect(try names(in: scratch.path("output")) == before)
    #expect(try names(in: scratch.path("output/single-frame/sub")) == [])
  }

  @Test func leftoversOfAKilledRunAreReplacedAndNothingElse() throws {
    let session = try EncoderWorker.encode(Fixture("single-frame"), into: scratch)
    _ = try scratch.directory("pictures.part")
    try scratch.file("pictures.part/2026-01-08T08-05-12.340Z.jpg", [1])
    try scratch.file("pictures.part/2026-01-08T08-05-12.340Z-4.png", [1])
    try scratch.file("pictures.part/pictures.jsonl", [1])
    #expect(try pictures(session.path).count == 1)
    #expect(try names(in: scratch.path) == ["output", "pictures"])
    // Images of the user are no leftovers.
    for (number, other) in ["diary.txt", "holiday.jpg", "2026-01-08.png"].enumerated() {
      let own = "2026-01-08T08-05-12.340Z.jpg"
      _ = try scratch.directory("\(number).part")
      try scratch.file("\(number).part/\(other)", [1])
      try scratch.file("\(number).part/\(own)", [1])
      let result = try EncoderWorker.run("pictures", session.path, "--to", scratch.path("\(number)"))
      #expect(result.status == 64 && result.errors.contains("other files, such as '\(other)'"), "\(result.errors)")
      #expect(try names(in: scratch.path("\(number).part")) == [own, other].sorted())
    }
  }

  @Test func damagedSessionLeavesNothing() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    try FileManager.default.removeItem(atPath: session.video(session.manifests[1]))
    for target in ["pictures", "pictures.zip", "pictures.jsonl"] {
      let result = try EncoderWorker.run("pictures", session.path, "--to", scratch.path(target))
      #expect(result.status == 65 && result.errors.contains(session.manifests[1].file), "\(result.errors)")
    }
    #expect(try names(in: scratch.path) == ["output"])
  }

  @Test(arguments: [
    ["--min-change", "0"], ["--min-change", "101"], ["--max", "0"], ["--max-side", "15"], ["--from", "noon"],
    ["--to", "film.mp4"], ["--to", "picture.png"], ["--every", "2"], ["--columns", "2"], ["--width=300"],
  ])
  func wrongUsage(options: [String]) throws {
    let target = options[0] == "--to" ? [] : ["--to", scratch.path("pictures")]
    let result = try Tool.run(EncoderWorker.path, ["pictures", scratch.path("s")] + target + options)
    #expect(result.status == 64, "\(result.errors)")
  }
}
