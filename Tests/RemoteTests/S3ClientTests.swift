import Encoding
import FileSystem
import Foundation
import FrameBatches
import JSON
import Sessions
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// Tests the client against a store that checks every signature.
@Suite(.enabled(if: StoreServer.isInstalled, Comment(rawValue: StoreServer.reason))) struct S3ClientTests {
  private let server: StoreServer
  /// A prefix for this test only.
  private let place = UUID().uuidString
  private let client: S3Client

  init() throws {
    server = try StoreServer.shared.get()
    client = try Self.client(server, "s3://replay/\(place)/some", listCount: 3)
  }

  private static func client(
    _ server: StoreServer, _ location: String, _ others: [String: String] = [:],
    listCount: Int? = nil, unsigned isUnsigned: Bool = false
  ) throws -> S3Client {
    let environment = server.environment.merging(others) { $1 }
    var settings = try S3Settings(environment: { environment[$0] }, unsigned: isUnsigned)
    settings.listCount = listCount
    settings.pauseMs = 1
    return try S3Client(S3Location(location), settings)
  }

  /// Keys that need correct percent-encoding and no path normalization.
  static let keys = [
    "plain.json", "a b", "a+b", "a%20b", "~tilde", "ü/ñ/日本", "e\u{301}", "\u{e9}", "a&b=c?d#e", "'\"<>", "a//b",
    "a/../b",
    "(x)*!,;:@$[]", "back\\slash", "./x", "100%",
  ]

  @Test func objectIsReadBackUnderAnyKey() throws {
    for key in Self.keys {
      let bytes = Array("of \(key)".utf8)
      let tag = try #require(try client.put(key, .bytes(bytes), .json, when: .always), "\(key)")
      #expect(try client.get(key, limit: 1_000) == StoredObject(bytes: bytes, tag: tag), "\(key)")
      #expect(try client.head(key)?.withoutAge == ObjectInfo(key: key, size: bytes.count, tag: tag))
    }
    // The store compares keys byte for byte: keys that look the same are different.
    #expect(
      try Set(server.keys(place).map { Array($0.utf8) }) == Set(Self.keys.map { Array("\(place)/some/\($0)".utf8) }))
  }

  @Test func listReturnsSeveralPagesInKeyOrder() throws {
    for key in Self.keys { _ = try client.put(key, .bytes([1, 2]), .json, when: .always) }
    // These keys lie outside the listed prefix.
    for key in ["someone", "other", "some/"] { try server.put("\(place)/\(key)", Data("x".utf8)) }
    var listed: [ObjectInfo] = []
    while true {
      let page = try client.list("", after: listed.last?.key)
      #expect(page.count <= 3)
      if page.isEmpty { break }
      listed += page
    }
    let sorted = Self.keys.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
    #expect(listed.map { Array($0.key.utf8) } == sorted)
    for object in listed { #expect(try client.head(object.key)?.withoutAge == object.withoutAge) }
    // The list tells when objects were written: within a day of this clock.
    #expect(listed.allSatisfy { abs(WallClock.nowMs - ($0.modifiedMs ?? 0)) < 86_400_000 })
    #expect(try client.list("a/", after: nil).map(\.key) == ["a/../b", "a//b"])
    #expect(try client.list("nothing", after: nil).isEmpty)
  }

  @Test func objectsAreCopiedAndRemoved() throws {
    let tag = try #require(try client.put("a+b ü", .bytes([1, 2, 3]), .archive, when: .always))
    let other = ObjectTag("\"0123456789abcdef0123456789abcdef\"")
    #expect(try client.copy("a+b ü", tag, to: "c d"))
    #expect(try !client.copy("a+b ü", other, to: "c d"))
    #expect(try client.get("c d", limit: 3)?.bytes == [1, 2, 3])
    #expect(try !client.copy("missing", tag, to: "c d"))
    #expect(try client.head("a+b ü")?.ageS.map { (0..<3_600).contains($0) } == true)
    try client.delete("a+b ü", tag)
    try client.delete("a+b ü", nil)
    #expect(try client.get("a+b ü", limit: 3) == nil && client.head("a+b ü") == nil)
    #expect(try server.keys(place) == ["\(place)/some/c d"])
  }

  @Test func requestsAreCountedByKind() throws {
    let tag = try #require(try client.put("x", .bytes([1]), .json, when: .absent))
    _ = try client.get("x", limit: 1)
    _ = try client.get("y", limit: 1)
    _ = try client.head("x")
    _ = try client.copy("x", tag, to: "y")
    _ = try client.list("", after: nil)
    try client.delete("x", nil)
    #expect(client.requests == ["PUT": 1, "GET": 2, "HEAD": 2, "COPY": 1, "LIST": 1, "DELETE": 1])
  }

  @Test func sessionTokenIsSigned() throws {
    let client = try Self.client(server, "s3://replay/\(place)", ["AWS_SESSION_TOKEN": "FwoGZXIvYXdzE//+/=="])
    #expect(try client.put("lent", .bytes([1]), .json, when: .absent) != nil)
    #expect(try client.list("", after: nil).map(\.key) == ["lent"])
  }

  @Test func refusedCredentialsAreReportedAtOnce() throws {
    for (others, isUnsigned) in [
      (["AWS_SECRET_ACCESS_KEY": "wrong"], false), (["AWS_ACCESS_KEY_ID": "AKIDOTHER"], false), ([:], true),
    ] {
      let client = try Self.client(server, "s3://replay", others, unsigned: isUnsigned)
      let error = #expect(throws: ObjectStoreError.self) { try client.get("x", limit: 1) }
      #expect(error?.status == 403 && error?.description.contains("AWS_SECRET_ACCESS_KEY") == true)
      #expect(client.requests == ["GET": 1])
    }
  }

  @Test func missingBucketThrowsInsteadOfReturningNil() throws {
    let client = try Self.client(server, "s3://nowhere")
    for ask in [
      { _ = try client.get("x", limit: 1) }, { _ = try client.list("", after: nil) },
      { _ = try client.put("x", .bytes([1]), .json, when: .absent) },
    ] {
      let error = #expect(throws: ObjectStoreError.self) { try ask() }
      #expect(error?.code == "NoSuchBucket")
    }
  }

  @Test func presignedURLGivesTheBytesUntilItExpires() throws {
    for key in Self.keys where key != "a/../b" && key != "./x" {
      _ = try client.put(key, .bytes(Array(key.utf8)), .json, when: .always)
      let url = try client.presigner(expires: 3_600).url(for: key)
      let fetched = try Tool.output("curl", ["--noproxy", "*", "-sSfg", url])
      #expect(fetched == Data(key.utf8), "\(key)")
    }
    let late = try client.presigner(expires: 60, now: Int64(Date().timeIntervalSince1970 * 1_000) - 61_000)
      .url(for: "plain.json")
    for url in [late, client.plainURL(for: "plain.json")] {
      #expect(try Tool.run("curl", ["--noproxy", "*", "-sSf", url]).status == 22)
    }
    #expect(throws: ObjectStoreError.self) { try client.presigner(expires: 604_801) }
    #expect(throws: ObjectStoreError.self) { try client.presigner(expires: 0) }
  }

  /// Signs at a fixed time, with every special character in the URLs.
  @Test func presignedURLsEqualThoseOfBotocore() throws {
    let script = """
      import datetime, sys
      sys.path.insert(0, sys.argv[1])
      import botocore.auth
      from botocore.awsrequest import AWSRequest
      from botocore.credentials import Credentials
      moment = datetime.datetime(2026, 1, 8, 9, 5, 12, tzinfo=datetime.timezone.utc)
      botocore.auth.get_current_datetime = lambda remove_tzinfo=True: moment
      for url in sys.argv[2:]:
          request = AWSRequest(method="GET", url=url)
          keys = Credentials("AKIDEXAMPLE", "se/cr+et", "to/ken+=")
          botocore.auth.S3SigV4QueryAuth(keys, "s3", "eu-west-3", expires=3600).add_auth(request)
          print(request.url)
      """
    let values = [
      "AWS_REGION": "eu-west-3", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "se/cr+et",
      "AWS_SESSION_TOKEN": "to/ken+=",
    ]
    let client = try S3Client(S3Location("s3://replay"), S3Settings { values[$0] })
    let urls = Self.keys.map { client.plainURL(for: $0) }
    let theirs = try Tool.output(Tool.python, ["-c", script, StoreServer.modules] + urls)
    func words(_ url: some StringProtocol) -> Set<Substring> { Set(String(url).split { "?&".contains($0) }) }
    let lines = String(decoding: theirs, as: UTF8.self).split(separator: "\n")
    #expect(lines.count == Self.keys.count)
    let presigner = try client.presigner(expires: 3_600, now: 1_767_863_112_000)
    for (key, line) in zip(Self.keys, lines) {
      let ours = presigner.url(for: key)
      #expect(words(ours) == words(line), "\(key)")
    }
  }

  @Test func playlistLinksCanBeFetchedByAPlayer() throws {
    let spool = try TestSpool()
    try spool.add("gap")
    try spool.drain("--hls")
    let folder = spool.output + "/gap"
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder) where !name.hasSuffix("hls") {
      try server.put("\(place)/output/gap/\(name)", try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name)))
    }
    func playlist(_ format: String = "hls", _ more: String...) throws -> Tool.Result {
      try Tool.run(
        EncoderWorker.path,
        ["stitch", "gap", "--store", "s3://replay/\(place)", "--format", format, "--presign"] + more,
        environment: server.environment)
    }
    let hls = try playlist()
    try #require(hls.status == 0, "\(hls.errors)")
    let stored = try String(contentsOfFile: folder + "/hls/session.m3u8", encoding: .utf8)
    // The session goes on: so does its playlist.
    #expect(hls.text.split(separator: "\n").count == stored.split(separator: "\n").count)
    #expect(!hls.text.contains("#EXT-X-ENDLIST") && hls.errors.contains("gap has not ended"), "\(hls.errors)")
    // ffprobe reads the fragments behind the links.
    let scratch = try ScratchDirectory()
    for (format, name) in [("hls", "x.m3u8"), ("ffconcat", "x.ffconcat")] {
      // ffprobe would wait for more segments of a live playlist.
      let end = format == "hls" ? "#EXT-X-ENDLIST\n" : ""
      let file = try scratch.file(name, Array((try playlist(format).text + end).utf8))
      let probed = try Tool.run(
        "ffprobe",
        ["-v", "error", "-safe", "0", "-allowed_extensions", "ALL", "-protocol_whitelist", "file,http,tcp,crypto,data"]
          .filter {
            format == "ffconcat" ? !["-allowed_extensions", "ALL"].contains($0) : !["-safe", "0"].contains($0)
          }
          + [
            "-count_packets", "-select_streams", "v", "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0", file,
          ],
        environment: ["no_proxy": "127.0.0.1"])
      let count = probed.text.split(whereSeparator: \.isNewline).first.flatMap { Int($0.prefix { $0.isNumber }) }
      #expect(probed.status == 0 && (count ?? 0) >= 5, "\(format): \(probed.errors) \(probed.text)")
    }
    let plain = try playlist("hls", "--plain").text
    #expect(plain.contains("\(server.endpoint)/replay/\(place)/output/gap/hls/") && !plain.contains("X-Amz"))
    let missing = try Tool.run(
      EncoderWorker.path, ["stitch", "other", "--store", "s3://replay", "--format", "hls", "--presign"],
      environment: server.environment)
    #expect(
      missing.status == 65 && missing.errors.contains("s3://replay/output/other/hls/session.m3u8: no such object"))
  }
}

extension ObjectInfo {
  /// The same object without its age, and without the time that lists tell.
  fileprivate var withoutAge: ObjectInfo { ObjectInfo(key: key, size: size, tag: tag) }
}
