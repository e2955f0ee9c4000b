import Foundation
import TestSupport
import Testing

/// `delete` beside a worker and a server with full caches: a word and a colour of the session are in no file of the spool, the output
/// and `TMPDIR`, and in no open file of any process.
@Suite struct DeletedTracesTests {
  /// A colour, and a word that only the session has.
  private static let (red, green, blue) = (UInt8(195), UInt8(90), UInt8(23))
  private static let word = "quorvlezyx7"
  private static let startMs: Int64 = 1_767_859_512_340

  private let spool: TestSpool
  private let temporary: String

  init() throws {
    spool = try TestSpool()
    temporary = try spool.scratch.directory("temporary")
  }

  private var environment: [String: String] { ["TMPDIR": temporary] }

  /// Adds pictures of one colour, each with a dark square elsewhere.
  private func add(_ name: String, session: String, word: String, colour: [UInt8], atMs startMs: Int64) throws {
    let (width, height) = (320, 240)
    let draft = spool.path + "/tmp/" + name
    try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
    let times = (0..<6).map { startMs + 1_000 * Int64($0) }
    for index in times.indices {
      var samples = (0..<width * height).flatMap { _ in colour.map(Int.init) }
      for y in 40..<80 {
        for x in 40 * index + 10..<40 * index + 50 {
          for channel in 0..<3 { samples[3 * (y * width + x) + channel] = 8 }
        }
      }
      let picture = PNGImage.file(width: width, height: height, depth: 8, kind: 2, samples: samples)
      try Data(picture).write(to: URL(fileURLWithPath: "\(draft)/\(word)-\(index).png"))
    }
    let frames = times.enumerated().map { #"{"file":"\#(word)-\#($0).png","timeMs":\#($1)}"# }
    let batch = """
      {"version":1,"session":"\(session)","metadata":{"note":"\(word)"},"frames":[\(frames.joined(separator: ","))],
      "events":[{"timeMs":\(startMs + 500),"type":"down","x":9,"y":9}]}
      """
    try Data(batch.utf8).write(to: URL(fileURLWithPath: draft + "/batch.json"))
    try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/" + name)
  }

  private func addBoth(_ number: Int) throws {
    let atMs = Self.startMs + 6_000 * Int64(number)
    try add(
      "walk@\(number)", session: "walk", word: Self.word, colour: [Self.red, Self.green, Self.blue], atMs: atMs)
    try add("other@\(number)", session: "other", word: "plain", colour: [235, 235, 235], atMs: atMs)
    try spool.waitUntil("the batches are published") {
      try spool.names("incoming").isEmpty
        && spool.names("claimed").allSatisfy { worker in
          try names(in: spool.path + "/claimed/" + worker).allSatisfy { !$0.contains(".") }
        }
    }
  }

  // MARK: - Search

  /// Whether a file has the word, the colour as decoded by stock ffmpeg, or coded bytes of a picture.
  private func isTrace(_ path: String, _ pictures: PictureBytes) throws -> Bool {
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    if bytes.range(of: Data(Self.word.utf8)) != nil || pictures.isPart(of: bytes) { return true }
    // Texts have no pictures; ffmpeg would wait for the next segment of a live playlist.
    if [".m3u8", ".json", ".ffconcat", ".vtt"].contains(where: path.hasSuffix) { return false }
    let decoded = try Tool.run(
      "ffmpeg", ["-v", "quiet", "-i", path, "-map", "0:v", "-pix_fmt", "rgb24", "-f", "rawvideo", "-"])
    return Self.hasColour(decoded.output)
  }

  private static func hasColour(_ pixels: Data) -> Bool {
    pixels.withUnsafeBytes { bytes in
      stride(from: 0, to: bytes.count - 2, by: 3).contains { at in
        zip(bytes[at..<at + 3], [red, green, blue]).allSatisfy { abs(Int($0) - Int($1)) <= 8 }
      }
    }
  }

  /// The files below the spool, its output and `TMPDIR` that have a trace.
  private func files(_ pictures: PictureBytes) throws -> [String] {
    try [spool.path, temporary].flatMap { root in
      try FileManager.default.subpathsOfDirectory(atPath: root).map { root + "/" + $0 }.filter { path in
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
        return try isTrace(path, pictures)
      }
    }
  }

  /// A process and those that it has started.
  private static func tree(of process: Int32) -> [Int32] {
    let tasks = (try? names(in: "/proc/\(process)/task")) ?? []
    let children = tasks.flatMap { task in
      ((try? String(contentsOfFile: "/proc/\(process)/task/\(task)/children", encoding: .utf8)) ?? "")
        .split(separator: " ").compactMap { Int32($0) }
    }
    return [process] + children.flatMap(tree)
  }

  /// The open files of a process and its children that have a trace: films without names, and shared memory of decoders.
  private func openFiles(of process: Int32, _ pictures: PictureBytes) -> [String] {
    Self.tree(of: process).flatMap { process in
      let directory = "/proc/\(process)/fd"
      return ((try? names(in: directory)) ?? []).compactMap { name -> String? in
        let path = directory + "/" + name
        guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else { return nil }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let isMemory = target.hasPrefix("/memfd:")
        let found = isMemory ? Self.hasPlane(path, pictures) : (try? isTrace(path, pictures)) ?? false
        return found ? "\(process): \(target)" : nil
      }
    }
  }

  /// Whether memory has a row of the colour's brightness, which depends on the matrix and the range; or bytes of a picture.
  private static func hasPlane(_ path: String, _ pictures: PictureBytes) -> Bool {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return false }
    defer { close(file) }
    let values = Set([107, 108, 109, 113, 114, 115] as [UInt8])
    var offset: off_t = 0
    // The memory is sparse. 3 is SEEK_DATA, and 4 is SEEK_HOLE.
    while true {
      let start = lseek(file, offset, 3)
      guard start >= 0 else { return false }
      let end = lseek(file, start, 4)
      guard end > start else { return false }
      var part = Data(count: Int(end - start))
      let count = part.withUnsafeMutableBytes { pread(file, $0.baseAddress, $0.count, start) }
      var (last, run): (UInt8, Int) = (0, 0)
      for byte in part.prefix(max(0, count)) {
        run = byte == last ? run + 1 : 1
        last = byte
        if run >= 256 && values.contains(byte) { return true }
      }
      if part.range(of: Data(word.utf8)) != nil || pictures.isPart(of: part) { return true }
      offset = end
    }
  }

  // MARK: - Caches

  private static let requests = [
    "timeline.json", "session.m3u8", "iframes.m3u8", "multivariant.m3u8", "pictures.jsonl?changed-only",
    "map.json?idle=cut", "session.mp4", "session.mp4?idle=cut", "session.gif", "session.webp", "thumbnail.jpg",
    "thumbnail.jpg?t=last", "frame.jpg?t=%2B1s", "frame.png?t=%2B2s", "segment-\(startMs).mp4",
    "segment-\(startMs).json",
    "session.json", "faults.json",
  ]

  private func fill(_ server: RunningServer) throws {
    for session in ["walk", "other"] {
      for name in Self.requests {
        let reply = try server.get("/sessions/\(session)/\(name)")
        #expect([200, 501].contains(reply.status), "\(session)/\(name): \(reply.status) \(reply.text.prefix(200))")
      }
    }
  }

  /// Runs commands that write what the user asks for elsewhere, with temporary files of their own.
  private func runCommands() throws {
    let walk = spool.output + "/walk"
    let own = try spool.scratch.directory("own")
    let commands = [
      ["pictures", walk, "--to", own + "/pictures", "--changed-only"],
      ["stitch", walk, "--to", own + "/film.mp4", "--map", own + "/film.json", "--idle", "cut"],
      ["stitch", walk, "--to", own + "/film.gif"], ["pictures", "--sheet", walk, "--to", own + "/sheet.png"],
      ["verify", walk],
    ]
    for command in commands {
      let result = try Tool.run(EncoderWorker.path, command, environment: environment)
      #expect(result.status == 0, "\(command): \(result.errors)")
    }
    // The words of a picture, as a file beside its manifest.
    let words = #"{"format":"segment-text/1","words":[{"text":"\#(Self.word)"}]}"#
    let file = URL(fileURLWithPath: walk + "/segment-\(Self.startMs).text.json")
    if !FileManager.default.fileExists(atPath: file.path) { try Data(words.utf8).write(to: file) }
  }

  @Test func wordAndColourOfADeletedSessionAreNowhere() async throws {
    let worker = try RunningWorker(
      ["--spool", spool.path, "--keep-batches", "--hls", "--thumbnails", "--sentry", "--jobs", "2"],
      environment: environment)
    defer { worker.signal(SIGKILL) }
    try spool.waitUntil("the worker takes batches") { FileManager.default.fileExists(atPath: spool.output) }
    for number in 0..<2 { try addBoth(number) }
    try spool.waitUntil("the views are made") {
      try names(in: spool.output + "/walk").contains("hls") && names(in: spool.output + "/walk").contains("thumbnails")
    }
    let server = try RunningServer(["serve", spool.output], environment: environment)
    try fill(server)
    try runCommands()

    // Without this the search proves nothing.
    // Small videos of two sessions have equal bytes: those are decoded.
    let pictures = try PictureBytes(in: [spool.path + "/done/walk@0"])
    let before = try files(pictures)
    for name in [".mp4", ".json", ".png", ".text.json"] { #expect(before.contains { $0.hasSuffix(name) }, "\(name)") }
    #expect(before.contains { $0.contains("/hls/") } && before.contains { $0.contains("/thumbnails/") })
    #expect(!before.contains { $0.contains("other") }, "\(before)")
    #expect(!openFiles(of: server.processIdentifier, pictures).isEmpty)

    let deletion = try Tool.run(
      EncoderWorker.path, ["delete", "walk", "--spool", spool.path], environment: environment)
    #expect(deletion.status == 0, "\(deletion.errors)")
    #expect(try files(pictures) == [])
    for name in Self.requests { #expect(try server.get("/sessions/walk/\(name)").status == 410, "\(name)") }
    #expect(try !server.get("/sessions.json").text.contains(Self.word))
    for process in [server.processIdentifier, worker.processIdentifier] {
      try await eventually("no open file has the session") { openFiles(of: process, pictures).isEmpty }
    }
    // A session that is still there keeps its caches.
    #expect(try server.get("/sessions/other/session.mp4").status == 200)

    // A later batch of the session is refused.
    try addBoth(2)
    #expect(try files(pictures) == [] && names(in: spool.output + "/.deleted") == ["walk.json"])
    try await eventually("no open file has the batch") {
      openFiles(of: worker.processIdentifier, pictures).isEmpty
    }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0 && server.stop() == 0)
    #expect(try files(pictures) == [])
    let named = try FileManager.default.subpathsOfDirectory(atPath: spool.path).filter { $0.contains("walk") }
    #expect(named == ["output/.deleted/walk.json"])
  }
}
