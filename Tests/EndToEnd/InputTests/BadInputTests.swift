import Foundation
import TestSupport
import Testing

@Suite struct BadInputTests {
  private let spool: TestSpool

  // Another user can reach `/tmp`, whatever TMPDIR says.
  init() throws { spool = try TestSpool(in: URL(fileURLWithPath: "/tmp")) }

  /// The worker quarantines a batch with an unreadable file; it does not publish the batch without that frame.
  @Test(
    .enabled(if: getuid() == 0, "only root can run a process as another user"), arguments: ["0000.jpg", "batch.json"])
  func unreadableFileQuarantinesTheBatch(file: String) throws {
    try spool.add("exact-1fps", as: "walk")
    let batch = spool.path + "/incoming/walk/"
    // A clone made with a private umask has private files.
    for name in try names(in: batch) {
      let mode = name == file ? 0o600 : 0o644
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: batch + name)
    }
    // The unprivileged user can reach this copy.
    let worker = spool.scratch.path("encoder-worker")
    // Not in this process: another test that starts a program meanwhile would inherit the open copy.
    try Tool.output("install", ["-m", "755", EncoderWorker.path, worker])
    for directory in ["spool", "spool/incoming", "spool/tmp", "spool/incoming/walk"] {
      try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: spool.scratch.path(directory))
    }
    let result = try Tool.run(
      "setpriv",
      ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", worker, "--spool", spool.path, "--drain"])
    #expect(result.status == 65, "\(result.errors)")
    let reason = try spool.reason("walk")
    #expect(reason.cause == "permission denied")
    #expect(reason.file.hasSuffix(file))
    #expect(FileManager.default.fileExists(atPath: spool.path + "/quarantine/walk/0000.jpg"))
    #expect(!FileManager.default.fileExists(atPath: spool.output + "/exact-1fps"))
  }

  /// A producer holds a write lease on a frame. The worker quarantines the batch instead of retrying it for ever.
  @Test(arguments: ["0003.jpg", "batch.json"])
  func leasedFileQuarantinesTheBatch(file: String) throws {
    try spool.add("exact-1fps", as: "walk")
    // The kernel breaks a lease after /proc/sys/fs/lease-break-time; the script ignores the signal and keeps the lease.
    let script = """
      import fcntl, os, signal, subprocess, sys
      file = os.open(sys.argv[1], os.O_RDWR)
      signal.signal(signal.SIGIO, lambda *_: None)
      fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
      sys.exit(subprocess.run(sys.argv[2:], stderr=subprocess.STDOUT).returncode)
      """
    let result = try Tool.run(
      Tool.python,
      ["-c", script, spool.path + "/incoming/walk/" + file, EncoderWorker.path, "--spool", spool.path, "--drain"])
    #expect(result.status == 65, "\(result.text)")
    let reason = try spool.reason("walk")
    #expect(reason.cause == "in use: another process holds a lease on it" && reason.file.hasSuffix(file))
    #expect(!FileManager.default.fileExists(atPath: spool.output + "/exact-1fps"))
  }

  @Test func limitsCanBeSet() throws {
    let batch = Fixture("exact-1fps").path
    func run(_ limits: String...) throws -> Tool.Result {
      try Tool.run(
        EncoderWorker.path, ["encode", batch, "--output", spool.output] + limits.flatMap { ["--limit", $0] })
    }
    #expect(try run("frames=11").errors.contains("12 frames, more than the limit of 11"))
    #expect(try run("json-bytes=100").status == 65)
    let small = try run("pixels=1000", "side=100")
    #expect(small.status == 65)
    #expect(small.errors.contains("more than the limit of 100 a side, 1000 in all"))
    #expect(!FileManager.default.fileExists(atPath: spool.output + "/exact-1fps"))
    for wrong in ["frames", "frames=0", "frames=many", "nothing=1", "side=99999999"] {
      #expect(try run(wrong).status == 64)
    }
    #expect(try run("frames=12", "ratio=300", "unpacked-bytes=1000000000").status == 0)
  }

  @Test func eachBadBatchIsKeptWithItsReasonAndTheRestIsEncoded() throws {
    let incoming = spool.path + "/incoming/"
    let files = FileManager.default
    try files.createDirectory(atPath: incoming + "empty", withIntermediateDirectories: false)
    try files.createDirectory(atPath: incoming + "undecodable", withIntermediateDirectories: false)
    try Data("no image".utf8).write(to: URL(fileURLWithPath: incoming + "undecodable/1767859512340.jpg"))
    try files.createDirectory(atPath: incoming + "no-frames", withIntermediateDirectories: false)
    try Data("hello".utf8).write(to: URL(fileURLWithPath: incoming + "no-frames/readme.txt"))
    try spool.add(file: "unknown.bin", Array("what is this".utf8))
    try spool.add(file: "empty-file", [])
    for (name, json) in [
      ("broken-json", "{\"version\":1,"),
      (
        "bad-session",
        #"{"version":1,"session":"../up","frames":[{"file":"1767859512340.jpg","timeMs":1767859512340}]}"#
      ),
    ] {
      try spool.add("single-frame", as: name)
      try Data(json.utf8).write(to: URL(fileURLWithPath: incoming + name + "/batch.json"))
    }
    try spool.add("single-frame", as: "bad session")
    let whole = spool.scratch.path("whole.tar.gz")
    try Tool.output("tar", ["-caf", whole, "-C", Fixture("jittered").path, "."])
    let archive = Array(try Data(contentsOf: URL(fileURLWithPath: whole)))
    try spool.add(file: "truncated.tar.gz", Array(archive.prefix(archive.count / 2)))
    symlink("/etc", incoming + "link")
    mkfifo(incoming + "fifo", 0o600)
    let bad = try spool.names("incoming")
    let copy = spool.scratch.path("copy")
    try Tool.output("cp", ["-a", incoming, copy])
    try spool.add("exact-1fps")
    try spool.add("corrupt-frames", as: "walk@1")

    let result = try spool.drain()
    #expect(result.status == 65)
    #expect(result.errors.contains("\(bad.count) batches in quarantine"))
    #expect(try spool.names("quarantine").filter { !$0.hasSuffix(".reason.json") } == bad)
    #expect(try spool.isAtRest)
    #expect(try names(in: spool.output) == [".staging", "exact-1fps", "walk"])
    for name in bad {
      let reason = try spool.reason(name)
      #expect(reason.format == "quarantine-reason/1")
      #expect(reason.batch == name)
      #expect(!reason.operation.isEmpty && !reason.file.isEmpty && !reason.cause.isEmpty && !reason.advice.isEmpty)
      if name != "fifo" {
        let kept = try Tool.run(
          "diff", ["-r", "--no-dereference", copy + "/" + name, spool.path + "/quarantine/" + name])
        #expect(kept.status == 0, "\(name): \(kept.text)")
      }
    }
    #expect(try spool.reason("empty").cause == "nothing in it")
    #expect(try spool.reason("undecodable").cause.contains("decode 1767859512340.jpg: not an image of a known format"))
    #expect(try spool.reason("broken-json").cause == "not JSON: a key is missing at line 1, column 14")
    #expect(try spool.reason("bad-session").cause == "the session id \"../up\" cannot be used")
    #expect(try spool.reason("bad session").cause == "the session id \"bad session\" cannot be used")
    #expect(try spool.reason("truncated.tar.gz").cause.hasPrefix("the archive breaks off"))
    #expect(try spool.reason("link").cause == "a symbolic link")
    #expect(try spool.reason("empty-file").cause == "an empty file")
  }

  @Test func nameThatExistsInQuarantineGetsASuffix() throws {
    for content in ["a", "b", "c"] {
      try spool.add(file: "bad", Array(content.utf8))
      #expect(try spool.drain().status == 65)
    }
    #expect(
      try spool.names("quarantine") == [
        "bad", "bad.2", "bad.2.reason.json", "bad.3", "bad.3.reason.json", "bad.reason.json",
      ])
    #expect(try String(contentsOfFile: spool.path + "/quarantine/bad.2", encoding: .utf8) == "b")
  }

  @Test func namesOfAnyBytesAndAnyLengthAreHandled() throws {
    let long = String(repeating: "n", count: 255)
    try spool.add(file: long, [1])
    let raw: [CChar] = Array((spool.path + "/incoming/").utf8).map { CChar(bitPattern: $0) } + [-1, 65, 0]
    #expect(mkdir(raw, 0o755) == 0)
    try spool.add("single-frame")
    #expect(try spool.drain().status == 65)
    #expect(try spool.isAtRest)
    let names = try spool.names("quarantine")
    #expect(names.count == 4)
    #expect(names.contains("%FFA"))
    #expect(FileManager.default.fileExists(atPath: spool.output + "/single-frame/session.json"))
  }

  /// The quarantine keeps a batch whose name equals another batch's reason file.
  @Test func quarantineOverwritesNoFile() throws {
    try spool.add(file: "foo.reason.json", Array("mine".utf8))
    #expect(try spool.drain().status == 65)
    try spool.add(file: "foo", Array("bad".utf8))
    #expect(try spool.drain().status == 65)
    #expect(try String(contentsOfFile: spool.path + "/quarantine/foo.reason.json", encoding: .utf8) == "mine")
    #expect(try String(contentsOfFile: spool.path + "/quarantine/foo.2", encoding: .utf8) == "bad")
    #expect(try spool.reason("foo.2").batch == "foo")
    #expect(try spool.reason("foo.reason.json").batch == "foo.reason.json")
  }

  /// The masks hide the first picture. The second file has a header without a picture and must not show the first one.
  @Test func fileWithoutAPictureDoesNotShowTheMaskedPictureBefore() throws {
    let folder = try spool.scratch.directory("spool/incoming/leak")
    let secret = try Fixture("exact-1fps").bytes("0005.jpg")
    let scan = try #require(secret.indices.dropLast().first { secret[$0] == 0xFF && secret[$0 + 1] == 0xDA })
    try Data(secret).write(to: URL(fileURLWithPath: folder + "/a.jpg"))
    try Data(secret[..<scan] + [0xFF, 0xD9]).write(to: URL(fileURLWithPath: folder + "/b.jpg"))
    let mask = #"[{"x":0,"y":0,"width":180,"height":320}]"#
    let json =
      #"{"version":1,"session":"leak","frames":[{"file":"a.jpg","timeMs":1767859512340,"masks":\#(mask)},{"file":"b.jpg","timeMs":1767859513340}]}"#
    try Data(json.utf8).write(to: URL(fileURLWithPath: folder + "/batch.json"))
    #expect(try spool.drain().status == 0)
    let session = try PublishedSession(spool.output + "/leak")
    #expect(session.manifests[0].refused.map(\.reason) == ["decode b.jpg: incomplete"])
    for picture in try Pixels.decode(session.video(session.manifests[0]), width: 180, height: 320) {
      #expect(picture.bytes.allSatisfy { $0 <= 8 })
    }
  }

  @Test func laterGoodFrameOfTwoAtOneInstantWins() throws {
    let folder = try spool.scratch.directory("spool/incoming/twice")
    for (name, frame) in [
      ("1767859512340.jpeg", "0001"), ("1767859512340.jpg", "0002"), ("1767859513340.jpeg", "0003"),
    ] {
      try Data(try Fixture("exact-1fps").bytes(frame + ".jpg")).write(to: URL(fileURLWithPath: folder + "/" + name))
    }
    try Data().write(to: URL(fileURLWithPath: folder + "/1767859513340.jpg"))
    #expect(try spool.drain().status == 0)
    let manifest = try PublishedSession(spool.output + "/twice").manifests[0]
    #expect(manifest.frames.map(\.source) == ["1767859512340.jpg", "1767859513340.jpeg"])
    #expect(
      Set(manifest.refused.map { "\($0.source): \($0.reason)" }) == [
        "1767859512340.jpeg: 1767859512340.jpg has the same instant and came later",
        "1767859513340.jpg: decode 1767859513340.jpg: an empty file",
      ])
  }

  @Test func refusedFramesAreReportedAndTheFrameBeforeIsHeld() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(Fixture("corrupt-frames"), into: scratch)
    let manifest = try #require(session.manifests.first)
    #expect(manifest.frames.map(\.source) == ["1767859512340.jpg", "1767859514340.jpg", "1767859516340.jpg"])
    #expect(manifest.frames.map(\.holdMs) == [2_000, 2_000, 1_000])
    let refused = session.manifests.flatMap(\.refused)
    #expect(refused.map(\.source) == ["1767859513340.jpg", "1767859515340.jpg"])
    #expect(
      refused.map(\.reason) == [
        "decode 1767859513340.jpg: invalid data", "decode 1767859515340.jpg: an empty file",
      ])
    // The last capture is broken, and left for the next run.
    #expect(session.index.durationMs == 5_000)
  }
}
