import Foundation
import JSON
import TestSupport
import Testing

/// `--report` of `verify` and `quarantine show` writes an archive without a name of its user.
@Suite struct FaultReportTests {
  /// In every place that a user can fill.
  private static let canary = "Kanarienvogel"
  private let scratch: ScratchDirectory
  private let startMs: Int64 = 1_767_859_512_000

  init() throws { scratch = try ScratchDirectory() }

  /// A folder with the word in each name and text, and a picture that cannot be decoded.
  private func makeBatch(_ path: String, broken: Bool = true) throws {
    let word = Self.canary
    _ = try scratch.directory(path)
    var frames: [String] = []
    for index in 0..<7 {
      let name = "\(word)-\(index).jpg"
      let bytes =
        index == 3 && broken ? Array("no picture of \(word)".utf8) : try Fixture("exact-1fps").bytes("0003.jpg")
      try scratch.file(path + "/" + name, bytes)
      frames.append(
        #"{"file":"\#(name)","timeMs":\#(startMs + Int64(index) * 1_000),"masks":[{"x":1,"y":2,"width":30,"height":40}]}"#
      )
    }
    let labels = ["step", "error", word].enumerated().map { index, kind in
      let timeMs = startMs + Int64(index) * 1_000
      return
        #"{"timeMs":\#(timeMs),"kind":"\#(kind)","text":"\#(word) says","level":"info","data":{"\#(word)":"\#(word)"}}"#
    }
    let batch = """
      {"version":1,"session":"\(word)","intervalMs":1000,"timeZone":"Europe/Berlin","metadata":{"\(word)":["\(word)"],"url":"https://\(word).example"},
       "\(word)":1,"events":[{"timeMs":\(startMs + 1),"type":"down","x":100,"y":100,"pointer":1}],
       "labels":[\(labels.joined(separator: ","))],"frames":[\(frames.joined(separator: ","))]}
      """
    try scratch.file(path + "/batch.json", Array(batch.utf8))
  }

  /// Settings with the word, and a host's and a user's name.
  private var environment: [String: String] {
    let word = Self.canary
    return [
      "ENCODER_WORKER_MAX_HOLD": "3000", "ENCODER_WORKER_SESSION_FROM": "\(word){session}", "USER": word,
      "ENCODER_WORKER_NOTIFY": "https://\(word)@example.org/\(word)", "HOSTNAME": word, "LOGNAME": word,
      "ENCODER_WORKER_STORE_HEADER": "x-amz-\(word.lowercased()):\(word)",
    ]
  }

  /// The files of a report, by name. `report.json` and the explanation come last.
  private func files(of reports: String) throws -> [(name: String, bytes: [UInt8])] {
    let names = try names(in: reports)
    #expect(names.count == 1 && names.allSatisfy { $0.hasPrefix("report-") && $0.hasSuffix(".tar") })
    let tar = reports + "/" + (names.first ?? "")
    let list = String(decoding: try Tool.output("tar", ["tf", tar]), as: UTF8.self)
    return try list.split(separator: "\n").map {
      (String($0), Array(try Tool.output("tar", ["xOf", tar, String($0)])))
    }
  }

  /// Whether the word is in any byte, in any case, or in pieces with another separator.
  private func isNamed(in bytes: [UInt8]) -> Bool {
    String(decoding: bytes, as: UTF8.self).lowercased().contains(Self.canary.lowercased())
  }

  private func archive(_ reports: String) throws -> [UInt8] {
    let tar = try #require(try names(in: reports).first)
    return Array(try Data(contentsOf: URL(fileURLWithPath: reports + "/" + tar)))
  }

  private func report(_ reports: String) throws -> JSONValue {
    try JSONParser.parse(try #require(try files(of: reports).first { $0.name == "report.json" }).bytes)
  }

  /// Publishes the batch, and damages a manifest and the directory.
  private func publish() throws -> String {
    let word = Self.canary
    try makeBatch(word)
    let result = try EncoderWorker.run("encode", scratch.path(word), "--output", scratch.path("output"))
    #expect(result.status == 0, "\(result.errors)")
    let session = scratch.path("output/" + word)
    let path = session + "/segment-\(startMs).json"
    var manifest = try SegmentManifestJSON(path)
    let encoder = try #require(manifest["encoder"])
    manifest["encoder"] = encoder.setting(["parameters": .string("ref=1:\(word)=1"), word: .string(word)])
    manifest["codec"] = .string("avc1." + word)
    manifest[word] = .array([.string(word)])
    manifest["pages"] = .array([.array([.number(0), .string("https://\(word).example/\(word)")])])
    manifest["refused"] = .array([
      .object(["source": .string(word), "reason": .string("not a JPEG: '\(word)' of \(word)"), word: .null])
    ])
    manifest["frames"] = .array(
      try manifest.frames.map { frame in
        frame.setting(["note": .string("of \(word)"), "status": .string(word), "masks": .array([.string(word)])])
      })
    try manifest.write(to: path)
    try Data(word.utf8).write(to: URL(fileURLWithPath: session + "/\(word).txt"))
    return session
  }

  @Test func reportOfASessionHasNoNameOfItsUser() throws {
    let session = try publish()
    let result = try Tool.run(
      EncoderWorker.path, ["verify", session, "--report", scratch.path("reports")], environment: environment,
      verifying: false)
    #expect(result.status == 65, "\(result.errors)")
    #expect(result.text.contains(scratch.path("reports/report-")) && result.text.contains("(2 files, "))
    #expect(try files(of: scratch.path("reports")).map(\.name) == ["report.json", "README.txt"])
    #expect(try !isNamed(in: archive(scratch.path("reports"))))
    let report = try report(scratch.path("reports"))
    #expect((report.object?["problems"]?.array ?? []).count > 1)
    // One member of the manifest, of its encoder and of its refused frame, and the masks of four frames.
    #expect(report.object?["dropped"] == .number(7))
    let settings = (report.object?["settings"]?.array ?? []).map(\.line)
    #expect(settings.contains(#"{"name":"max-hold","value":"3000"}"#))
    #expect(settings.contains(#"{"name":"session-from","value":null}"#))
  }

  /// The report of an intact session has the numbers of its manifests.
  @Test func timesSizesAndDigestsEqualTheOriginals() throws {
    try makeBatch("folder")
    #expect(try EncoderWorker.run("encode", scratch.path("folder"), "--output", scratch.path("output")).status == 0)
    let session = try PublishedSession(scratch.path("output/" + Self.canary))
    let reports = scratch.path("reports")
    let result = try EncoderWorker.run("verify", session.path, "--report", reports, "--json")
    #expect(result.status == 0)
    let line = try #require(result.text.split(separator: "\n").last)
    #expect(try JSONParser.parse(Array(line.utf8)).object?["bytes"]?.integer == Int64(archive(reports).count))
    let manifests = try #require(try report(reports).object?["manifests"]?.array)
    #expect(manifests.count == session.manifests.count && manifests.count == 2)
    let starts = manifests.compactMap { $0.object?["startMs"]?.integer }
    for (startMs, redacted) in zip(starts, manifests) {
      let original = try SegmentManifestJSON(session.path + "/segment-\(startMs).json")
      for key in ["startMs", "endMs", "durationMs", "bytes", "sha256", "samples", "width", "codec", "encoder", "file"] {
        #expect(redacted.object?[key] == original[key], "\(key)")
      }
      for key in ["timeMs", "holdMs", "status", "changedBlocks", "masks"] {
        let kept = redacted.object?["frames"]?.array?.map { $0.object?[key] }
        #expect(try kept == original.frames.map { $0.object?[key] }, "\(key)")
      }
      #expect(redacted.object?["sealed"] == .bool(true))
    }
    // Equal names have equal stand-ins, and a label keeps its instant, not its text.
    #expect(Set(manifests.map { $0.object?["session"]?.string }).count == 1)
    let labels = manifests.flatMap { $0.object?["labels"]?.array ?? [] }
    #expect(labels.count == 3 && labels[0].object?["text"] == .number(Self.canary.count + 5))
    #expect(labels[0].object?["timeMs"] == .number(startMs) && labels[0].object?["kind"] == .string("step"))
    #expect(try !isNamed(in: archive(reports)))
  }

  @Test func pixelsAddTheVideosAsTheyAre() throws {
    let session = try publish()
    let reports = scratch.path("reports")
    let result = try Tool.run(
      EncoderWorker.path, ["verify", session, "--report", reports, "--pixels"], verifying: false)
    #expect(result.text.contains("with the pictures as they are"))
    let files = try files(of: reports)
    for name in ["segment-\(startMs).mp4", "segment-\(startMs + 5_000).mp4"] {
      let video = files.first { $0.name == "videos/" + name }
      #expect(try video?.bytes == Array(Data(contentsOf: URL(fileURLWithPath: session + "/" + name))))
    }
    #expect(files.count == 4)
    #expect(!files.filter { !$0.name.hasPrefix("videos/") }.contains { isNamed(in: $0.bytes) })
  }

  /// A batch whose `batch.json` ends early, as a folder and as an archive.
  @Test(arguments: [false, true]) func reportOfABatchHasNoNameOfItsUser(isArchive: Bool) throws {
    let word = Self.canary
    let spool = try TestSpool()
    try makeBatch("bad/" + word)
    let description = scratch.path("bad/\(word)/batch.json")
    let text = try String(contentsOfFile: description, encoding: .utf8)
    try text.replacingOccurrences(of: "\"intervalMs\":1000", with: "\"intervalMs\":\"\(word)\"")
      .write(toFile: description, atomically: false, encoding: .utf8)
    let name = isArchive ? word + ".tar" : word
    if isArchive {
      try Tool.output("tar", ["cf", spool.path + "/incoming/" + name, "-C", scratch.path("bad/" + word), "."])
    } else {
      try FileManager.default.moveItem(atPath: scratch.path("bad/" + word), toPath: spool.path + "/incoming/" + name)
    }
    try spool.drain()
    #expect(try spool.names("quarantine").contains(name))
    let reports = scratch.path("reports")
    let result = try Tool.run(
      EncoderWorker.path, ["quarantine", "show", "--spool", spool.path, "--report", reports, name],
      environment: environment)
    #expect(result.status == 0 && result.text.contains("report-"), "\(result.errors)")
    #expect(try !isNamed(in: archive(reports)))
    let report = try report(reports)
    let reason = try spool.reason(name)
    #expect(report.object?["reason"]?.object?["operation"]?.string == reason.operation)
    #expect(report.object?["reason"]?.object?["file"] == .string("batch.json"))
    let files = report.object?["files"]?.array ?? []
    #expect(files.count == 8)
    #expect(files.filter { $0.object?["kind"] == .string("JPEG") && $0.object?["sha256"] != nil }.count == 6)
    #expect(report.object?["refused"]?.array?.count == 1)
  }

  @Test func pixelsAddTheFilesOfABatch() throws {
    let spool = try TestSpool()
    try spool.add(file: "note.tar", Array("no tar".utf8))
    try spool.drain()
    let reports = scratch.path("reports")
    let result = try EncoderWorker.run(
      "quarantine", "show", "--spool", spool.path, "note.tar", "--report", reports, "--pixels")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try files(of: reports).first { $0.name == "batch/note.tar" }?.bytes == Array("no tar".utf8))
  }

  @Test(arguments: [
    ["verify", "a", "b", "--report", "reports"], ["verify", "a", "--pixels"], ["verify", "a", "--report", ""],
    ["quarantine", "show", "--spool", "s", "--report", "reports", "one", "two"],
    ["quarantine", "show", "--events", "--spool", "s", "--report", "reports", "one"],
  ])
  func reportIsAboutOneThing(words: [String]) throws {
    #expect(try Tool.run(EncoderWorker.path, words, in: scratch.url).status == 64)
  }

  /// In the session itself it would be an orphan.
  @Test func reportIsNotWrittenIntoASession() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let result = try EncoderWorker.run("verify", session.path, "--report", session.path + "/reports")
    #expect(result.status == 64, "\(result.errors)")
    #expect(try !names(in: session.path).contains("reports"))
  }
}
