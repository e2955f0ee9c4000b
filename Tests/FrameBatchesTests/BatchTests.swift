import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import SegmentEncoder
@testable import Sessions

/// Reads a batch that a test wrote.
private func read(_ path: String, session: String? = "s", limits: Limits = Limits()) throws -> Batch {
  try BatchReader(reading: path, session: session, limits: limits).batch
}

private func cause(_ body: () throws -> Void) -> String? {
  do {
    try body()
    return nil
  } catch let bad as BadBatch {
    return bad.cause
  } catch {
    return "\(type(of: error)): \(error)"
  }
}

@Suite struct BatchTests {
  let scratch: ScratchDirectory
  static var jpeg: [UInt8] { get throws { try Fixture("single-frame").bytes("1767859512340.jpg") } }

  init() throws { scratch = try ScratchDirectory() }

  /// Writes a native batch: frame files, and this `batch.json`.
  private func native(_ json: String, files: [String] = ["a.jpg", "b.jpg"]) throws -> String {
    let path = try scratch.directory("batch-\(UUID().uuidString)")
    for file in files { try scratch.file(lastComponent(of: path) + "/" + file, Self.jpeg) }
    try scratch.file(lastComponent(of: path) + "/batch.json", Array(json.utf8))
    return path
  }

  @Test func timesOfAPlainDirectoryComeFromFileNames() throws {
    let batch = try BatchReader(reading: Fixture("jittered").path).batch
    #expect(batch.session.description == "jittered")
    #expect(batch.frames.count == 11)
    #expect(batch.frames.first?.timeMs == 1_767_859_512_340)
    #expect(batch.intervalMs == 1_000)
    #expect(batch.endMs == 1_767_859_522_354 + 1_000)
  }

  /// The distances of a recorder that captures on change say nothing about its last picture.
  @Test(arguments: [
    (#""capture":"onChange","#, 1_000), (#""capture":"onChange","intervalMs":5000,"#, 5_000), ("", 40_000),
  ])
  func lastPictureOfARecorderThatCapturesOnChangeStaysForItsInterval(facts: String, holdMs: Int64) throws {
    let batch = try read(
      native(
        #"{"version":1,"session":"S",\#(facts)"#
          + #""frames":[{"file":"a.jpg","timeMs":1767859512340},{"file":"b.jpg","timeMs":1767859552340}]}"#))
    #expect(batch.endMs == 1_767_859_552_340 + holdMs)
  }

  @Test(arguments: [
    (["1767859512340@x", "a"], "1767859512340"), (["s1@1.tar.gz"], "s1"), (["s1.tar.zst"], "s1"), (["s1.TGZ"], "s1"),
  ])
  func sessionOfAPlainBatchIsItsNameBeforeTheAtSign(names: [String], session: String) throws {
    let folder = try scratch.directory("in")
    try Data(Self.jpeg).write(to: URL(fileURLWithPath: folder + "/1767859512340.jpg"))
    let path = scratch.path(names[0])
    if names[0].lowercased().contains(".t") {
      try Tool.output("tar", ["-caf", path.replacingOccurrences(of: "TGZ", with: "tgz"), "-C", folder, "."])
      if names[0].hasSuffix("TGZ") {
        try FileManager.default.moveItem(atPath: path.replacingOccurrences(of: "TGZ", with: "tgz"), toPath: path)
      }
    } else {
      try FileManager.default.moveItem(atPath: folder, toPath: path)
    }
    #expect(try BatchReader(reading: path).batch.session.description == session)
  }

  @Test(arguments: ["tar", "tar.gz", "tar.zst"], [".", "folder"])
  func archiveAndDirectoryAreTheSameBatch(suffix: String, folder: String) throws {
    for fixture in [Fixture("exact-1fps"), Fixture("jittered")] {
      let path = scratch.path("\(fixture.name)-\(folder.count).\(suffix)")
      if folder == "." {
        try Tool.output("tar", ["-caf", path, "-C", fixture.path, "."])
      } else {
        let parent = URL(fileURLWithPath: fixture.path).deletingLastPathComponent().path
        try Tool.output("tar", ["-caf", path, "-C", parent, fixture.name])
      }
      let archive = try BatchReader(reading: path, session: fixture.name)
      let directory = try BatchReader(reading: fixture.path, session: fixture.name)
      #expect(archive.batch.frames.map(\.source) == directory.batch.frames.map(\.source))
      #expect(archive.batch.frames.map(\.timeMs) == directory.batch.frames.map(\.timeMs))
      #expect(archive.batch.refused == directory.batch.refused)
      #expect(try BatchDigest.of(archive) == BatchDigest.of(directory))
    }
  }

  @Test func allFieldsOfTheDescriptionAreRead() throws {
    let batch = try read(
      native(
        """
        {"version":1,"session":"S.1","intervalMs":500,"endMs":1767859520000,"final":true,"capture":"onChange",
         "frames":[{"file":"b.jpg","timeMs":1767859513340},{"file":"a.jpg","timeMs":1767859512340,
           "masks":[{"x":1,"y":2.5,"width":3,"height":4}]}],
         "metadata":{"big":12345678901234567890123456789,"exact":1.10e-200,"deep":[null,true,{"x":"é/"}]},"unknown":1}
        """))
    #expect(batch.session.description == "S.1")
    #expect(batch.intervalMs == 500)
    #expect(batch.endMs == 1_767_859_520_000)
    #expect(batch.isFinal)
    #expect(batch.capture == .onChange)
    #expect(batch.frames.map(\.source) == ["a.jpg", "b.jpg"])
    #expect(batch.frames[0].masks == .rectangles([Mask(x: 1, y: 2.5, width: 3, height: 4)]))
    #expect(
      batch.metadata.line == #"{"big":12345678901234567890123456789,"deep":[null,true,{"x":"é/"}],"exact":1.10e-200}"#)
  }

  @Test func frameListIsOptionalWhenNamesHaveTimes() throws {
    let path = try native(
      #"{"version":1,"session":"S"}"#, files: ["1767859512340.jpg", "1767859513340.jpg", "notes.txt"])
    let batch = try read(path)
    #expect(batch.frames.map(\.timeMs) == [1_767_859_512_340, 1_767_859_513_340])
    #expect(batch.refused == [RefusedFrame(source: "notes.txt", reason: "the name carries no instant")])
  }

  /// The reader would otherwise ignore one description and its masks.
  @Test func batchWithTwoDescriptionsIsRefused() throws {
    let scratch = try ScratchDirectory()
    for folder in ["a", "b"] {
      _ = try scratch.directory("two/" + folder)
      try scratch.file("two/\(folder)/batch.json", Array(#"{"version":1,"session":"S"}"#.utf8))
      try scratch.file("two/\(folder)/1767859512340.jpg", try Fixture("exact-1fps").bytes("0000.jpg"))
    }
    for names in [["a", "b"], ["-C", "a", "batch.json", "1767859512340.jpg", "batch.json"]] {
      let path = scratch.path("two-\(names.count).tar")
      try Tool.output("tar", ["-cf", path, "-C", scratch.path("two"), "--hard-dereference"] + names)
      #expect(throws: BadBatch.self) { try BatchReader(reading: path) }
    }
  }

  @Test func unusableFrameIsReported() throws {
    let path = try native(
      """
      {"version":1,"session":"S","frames":[
        {"file":"a.jpg","timeMs":1767859512340},{"file":"b.jpg","timeMs":1767859512340},
        {"file":"early.jpg","timeMs":5},{"file":"nan.jpg","timeMs":NaN},{"file":"half.jpg","timeMs":1767859512340.5},
        {"file":"text.jpg","timeMs":"1767859512340"},{"file":"a.jpg","timeMs":1767859519340}]}
      """, files: ["a.jpg", "b.jpg", "stray.jpg", "._a.jpg", "x.mp4", ".DS_Store"])
    let batch = try read(path)
    // Of two frames with the same instant, the later one comes first. It wins if it can be decoded.
    #expect(batch.frames.map(\.source) == ["b.jpg", "a.jpg"])
    #expect(
      Set(batch.refused.map { "\($0.source): \($0.reason)" }) == [
        "a.jpg: frames[6]: listed twice", "early.jpg: instant 5 lies outside 2001 to 2100",
        "nan.jpg: frames[3]: timeMs NaN is not a whole number of milliseconds",
        "half.jpg: frames[4]: timeMs 1767859512340.5 is not a whole number of milliseconds",
        #"text.jpg: frames[5]: timeMs "1767859512340" is not a whole number of milliseconds"#,
        "stray.jpg: not listed in batch.json",
      ])
  }

  @Test(
    arguments: [
      ([0, 1_000, 2_000], 1_000), ([0, 333, 666, 999], 333), ([0, 600, 1_200], 1_000), ([0, 1_600], 1_000),
      ([0, 599], 599), ([0, 1_601, 3_202], 1_601), ([0], 1_000), ([0, 100, 401], 200),
    ] as [([Int64], Int64)])
  func theNominalIntervalIsTheMedianUnlessItIsAboutASecond(instants: [Int64], interval: Int64) {
    #expect(Batch.nominalInterval(of: instants) == interval)
  }

  @Test(arguments: [
    (#"{"version":1,"session":"S","frames":[]}"#, "no frame that can be used"),
    (#"{"version":2,"session":"S"}"#, "version 2 is not known"),
    (#"{"session":"S"}"#, #"no "version""#),
    (#"{"version":1,"session":"../x","frames":[{"file":"a.jpg","timeMs":1767859512340}]}"#, "session id \"../x\""),
    (#"{"version":1,"session":".x","frames":[{"file":"a.jpg","timeMs":1767859512340}]}"#, "session id \".x\""),
    (#"{"version":1,"session":"","frames":[{"file":"a.jpg","timeMs":1767859512340}]}"#, "no session id"),
    (#"{"version":1,"session":"S","intervalMs":0,"frames":[{"file":"a.jpg","timeMs":1767859512340}]}"#, "intervalMs 0"),
    (#"{"version":1,"session":"S","intervalMs":"x"}"#, "intervalMs: not a whole number"),
    (#"{"version":1,"session":"S","endMs":1767859512340,"frames":[{"file":"a.jpg","timeMs":1767859512340}]}"#, "endMs"),
    (#"{"version":1,"session":"S","capture":"always"}"#, #"capture: "always" is neither"#),
    (#"{"version":1,"session":"S","session":"T"}"#, #"a second "session" at line 1, column 28"#),
    (
      #"{"version":1,"session":"S","frames":[{"file":"a.jpg","timeMs":1767859512340,"masks":[],"masks":[]}]}"#,
      #"a second "masks""#
    ),
    (#"{"version":1,"metadata":{"x":[NaN]}}"#, "metadata: NaN"),
    (#"{"version":1,"metadata":"# + String(repeating: "[", count: 500), "nested more than 64 deep"),
    (#"{"version":1,"metadata":""# + String(repeating: "m", count: 70_000) + "\"}", "metadata: 70002 bytes, more than"),
    (#"{"version":1,"session":"S","frames":[{"timeMs":1}]}"#, "frames[0]: no \"file\""),
    (#"{"version":1,"session":"S""#, "not JSON"),
    ("\u{0}\u{1}", "not JSON"),
  ])
  func invalidDescriptionIsRefusedWithItsPosition(json: String, expected: String) throws {
    let path = try native(json)
    let found = cause { _ = try read(path) }
    #expect(found?.contains(expected) == true, "\(found ?? "accepted")")
  }

  @Test func invalidSessionIDIsRefusedWithoutSanitising() {
    for good in ["a", "A-z_0.9", String(repeating: "x", count: 128)] { #expect(SessionID(good) != nil) }
    for bad in ["", ".", "..", ".a", "a/b", "a b", "ä", "a\u{0}", String(repeating: "x", count: 129)] {
      #expect(SessionID(bad) == nil)
    }
  }

  @Test(arguments: [
    #"1.jpg\u0000"# + String(repeating: "A", count: 70_000), #"\u0000"#, String(repeating: "n/", count: 600),
  ])
  func impossibleFileNameIsRefused(name: String) throws {
    let path = try native(
      #"{"version":1,"session":"S","frames":[{"file":"\#(name)","timeMs":1767859512340},{"file":"a.jpg","timeMs":1767859513340}]}"#
    )
    let batch = try read(path)
    #expect(batch.frames.map(\.source) == ["a.jpg"])
    #expect(batch.refused.first?.reason == "frames[0]: no name that a file can have")
  }

  @Test func limitsAreCheckedBeforeDecoding() throws {
    var limits = Limits()
    limits.frames = 10
    #expect(cause { _ = try read(Fixture("jittered").path, limits: limits) } == "11 frames, more than the limit of 10")
    limits = Limits()
    limits.fileBytes = 100
    let source = try BatchReader(reading: Fixture("jittered").path, limits: limits)
    guard case .refused(let refusal) = try source.images(of: source.batch.frames[0])[0] else {
      Issue.record("a large file was read")
      return
    }
    #expect(refusal.text.contains("bytes, more than the limit of 100; raise the limit with --limit file-bytes="))
    let long = try native(
      #"{"version":1,"session":"S","capture":"onChange","endMs":4102444799999,"frames":[{"file":"a.jpg","timeMs":1767859512340}]}"#
    )
    let staging = try Staging(output: scratch.path("output"), worker: WorkerID())
    let encoder = BatchEncoder(BatchEncoder.Options(), staging: staging, index: SessionViews())
    #expect(cause { _ = try encoder.publish(long) } == "more than the limit of 20000 segments")
  }

  @Test func onlyRegularFilesOfADirectoryAreFrames() throws {
    let folder = try scratch.directory("hostile")
    try Data(Self.jpeg).write(to: URL(fileURLWithPath: folder + "/1767859512340.jpg"))
    symlink("/etc/passwd", folder + "/1767859513340.jpg")
    mkfifo(folder + "/1767859514340.jpg", 0o600)
    try FileManager.default.createDirectory(atPath: folder + "/1767859515340.jpg", withIntermediateDirectories: false)
    let batch = try read(folder)
    #expect(batch.frames.count == 1)
    #expect(batch.refused.map(\.source) == ["1767859513340.jpg", "1767859514340.jpg"])
    #expect(batch.refused.map(\.reason) == ["a symbolic link", "not a regular file"])
  }

  @Test(arguments: ["../single.jpg", "/etc/passwd", "link/x.jpg", "sub/../../single.jpg", "fifo"])
  func descriptionCannotReadFilesOutsideItsBatch(file: String) throws {
    try scratch.file("single.jpg", Self.jpeg)
    let path = try native(
      #"{"version":1,"session":"S","frames":[{"file":"\#(file)","timeMs":1767859512340},{"file":"a.jpg","timeMs":1767859513340}]}"#
    )
    symlink(scratch.path, path + "/link")
    try scratch.file("x.jpg", Self.jpeg)
    mkfifo(path + "/fifo", 0o600)
    let source = try BatchReader(reading: path)
    // Some paths are refused as frames. For the others, the reader returns no bytes.
    for frame in source.batch.frames where frame.source == file {
      guard case .refused = try source.images(of: frame)[0] else {
        Issue.record("\(file) was read")
        return
      }
    }
    #expect(source.batch.frames.contains { $0.source == file } || source.batch.refused.contains { $0.source == file })
    let good = try #require(source.batch.frames.last)
    guard good.source == "a.jpg", case .bytes = try source.images(of: good)[0] else {
      Issue.record("a good frame was refused")
      return
    }
  }

  /// A file has one name. Masks for another spelling of the path might belong to another file.
  @Test(arguments: ["sub/../a.jpg", "sub/./a.jpg", "././../a.jpg"])
  func aPathWithDotsIsRefused(file: String) throws {
    let path = try native(
      #"{"version":1,"session":"S","frames":[{"file":"\#(file)","timeMs":1767859512340},{"file":"././a.jpg","timeMs":1767859513340}]}"#
    )
    let batch = try read(path)
    #expect(batch.frames.map(\.source) == ["a.jpg"])
    #expect(batch.refused.first?.reason == "frames[0]: a path with . or .. in it")
  }
}
