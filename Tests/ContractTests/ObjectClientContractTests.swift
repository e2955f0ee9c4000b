import FileSystem
import Foundation
import Sessions
import TestSupport
import Testing

@testable import Remote

/// An object store for one test.
enum ObjectClientKind: String, CaseIterable, CustomTestStringConvertible {
  case directory
  case memory
  case s3

  var testDescription: String { rawValue }

  /// - Returns: nil if the machine has no server for it.
  func client(in scratch: ScratchDirectory) throws -> (any ObjectClient)? {
    switch self {
    case .directory: return DirectoryObjects(scratch.path("objects"))
    case .memory: return MemoryObjects()
    case .s3:
      guard StoreServer.isInstalled else { return nil }
      let server = try StoreServer.shared.get()
      var settings = try S3Settings(environment: { server.environment[$0] }, unsigned: false)
      settings.listCount = 3
      return try S3Client(S3Location("s3://replay/\(UUID().uuidString)/some"), settings)
    }
  }
}

/// The promises of ``ObjectClient``, for each store that the program has.
@Suite struct ObjectClientContractTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Keys that a client must neither change nor confuse.
  private static let keys = [
    "plain.json", "a b", "a+b", "a%20b", "~tilde", "ü/ñ/日本", "e\u{301}", "\u{e9}", "a&b=c?d#e", "'\"<>", "(x)*!,;:@$[]",
    "back\\slash", "100%", "a/b/c", "a/b.json", "a/b-c", ".hidden/x", "a/.b",
  ]

  @Test(arguments: ObjectClientKind.allCases)
  func objectIsReadBackUnderItsKey(kind: ObjectClientKind) throws {
    guard let client = try kind.client(in: scratch) else { return }
    for key in Self.keys {
      let bytes = Array("of \(key)".utf8)
      #expect(try client.get(key, limit: 1_000) == nil && client.head(key) == nil, "\(key)")
      let tag = try #require(try client.put(key, .bytes(bytes), .json, when: .always), "\(key)")
      #expect(try client.get(key, limit: bytes.count) == StoredObject(bytes: bytes, tag: tag), "\(key)")
      let info = try #require(try client.head(key))
      #expect(info.size == bytes.count && info.tag == tag && info.ageS.map { (0..<3_600).contains($0) } == true)
      #expect(throws: ObjectTooLarge.self) { try client.get(key, limit: bytes.count - 1) }
    }
    // Keys that look the same are different.
    #expect(try client.get("e\u{301}", limit: 100)?.bytes != client.get("\u{e9}", limit: 100)?.bytes)
  }

  @Test(arguments: ObjectClientKind.allCases)
  func listReturnsKeysInTheOrderOfTheirBytes(kind: ObjectClientKind) throws {
    guard let client = try kind.client(in: scratch) else { return }
    for key in Self.keys { _ = try client.put(key, .bytes([1, 2]), .json, when: .always) }
    for prefix in ["", "a", "a/", "a/b", "a/b/", "ü/", "nothing", "nothing/"] {
      var listed: [ObjectInfo] = []
      while case let page = try client.list(prefix, after: listed.last?.key), !page.isEmpty {
        listed += page
        try #require(listed.count <= Self.keys.count)
      }
      let expected = Self.keys.map { Array($0.utf8) }.filter { $0.starts(with: Array(prefix.utf8)) }
        .sorted { $0.lexicographicallyPrecedes($1) }
      #expect(listed.map { Array($0.key.utf8) } == expected, "\(prefix)")
      for object in listed {
        #expect(try client.head(object.key)?.tag == object.tag && object.size == 2)
        #expect(object.ageS.map { (0..<3_600).contains($0) } == true)
      }
      for (index, key) in expected.enumerated() {
        let next = try client.list(prefix, after: String(decoding: key, as: UTF8.self)).first
        #expect(next.map { Array($0.key.utf8) } == (index + 1 < expected.count ? expected[index + 1] : nil))
      }
    }
  }

  @Test(arguments: ObjectClientKind.allCases)
  func conditionsHold(kind: ObjectClientKind) throws {
    guard let client = try kind.client(in: scratch) else { return }
    let first = try #require(try client.put("x/head.json", .bytes([1]), .json, when: .absent))
    #expect(try client.put("x/head.json", .bytes([2]), .json, when: .absent) == nil)
    let second = try #require(try client.put("x/head.json", .bytes([3]), .json, when: .matching(first)))
    #expect(first != second)
    #expect(try client.put("x/head.json", .bytes([4]), .json, when: .matching(first)) == nil)
    #expect(try client.put("missing", .bytes([4]), .json, when: .matching(first)) == nil)
    #expect(try client.get("x/head.json", limit: 1) == StoredObject(bytes: [3], tag: second))
    try client.delete("x/head.json", first)
    #expect(try client.head("x/head.json") != nil)
    try client.delete("x/head.json", second)
    try client.delete("x/head.json", second)
    try client.delete("x/head.json", nil)
    #expect(try client.head("x/head.json") == nil && client.list("", after: nil).isEmpty)
    try client.requireConditions(tryingAt: "x/conditions", name: "here")
  }

  @Test(arguments: ObjectClientKind.allCases)
  func concurrentConditionalWritesEachCountOnce(kind: ObjectClientKind) async throws {
    guard let client = try kind.client(in: scratch) else { return }
    _ = try client.put("n/count", .bytes(Array("0".utf8)), .text, when: .absent)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for worker in 0..<4 {
        group.addTask {
          var done = 0
          while done < 10 {
            let old = try #require(try client.get("n/count", limit: 10))
            let number = try #require(Int(String(decoding: old.bytes, as: UTF8.self)))
            let body = ObjectBody.bytes(Array(String(number + 1).utf8))
            if try client.put("n/count", body, .text, when: .matching(old.tag)) != nil { done += 1 }
            // Beside them, other objects come and go.
            let own = "m/\(worker)"
            _ = try client.put(own, .bytes([1]), .text, when: .absent)
            try client.delete(own, nil)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try client.get("n/count", limit: 10)?.bytes == Array("40".utf8))
    #expect(try client.list("", after: nil).map(\.key) == ["n/count"])
  }

  @Test(arguments: ObjectClientKind.allCases)
  func filesAreWrittenDownloadedAndCopied(kind: ObjectClientKind) throws {
    guard let client = try kind.client(in: scratch) else { return }
    let bytes = (0..<3 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }
    let file = try scratch.file("large", bytes)
    let tag = try client.put("v/large.mp4", .file(file), .video, when: .absent)
    let back = scratch.path("back")
    #expect(try client.download("v/large.mp4", to: back, limit: bytes.count) == tag)
    #expect(try Data(contentsOf: URL(fileURLWithPath: back)) == Data(bytes))
    #expect(throws: DiskError.self) { try client.download("v/large.mp4", to: back, limit: bytes.count) }
    #expect(throws: ObjectTooLarge.self) {
      try client.download("v/large.mp4", to: scratch.path("less"), limit: 1 << 20)
    }
    #expect(try client.download("v/missing", to: scratch.path("none"), limit: 1) == nil)
    #expect(try client.copy("v/large.mp4", try #require(tag), to: "w/copy.mp4"))
    #expect(try !client.copy("v/large.mp4", ObjectTag("\"0123456789abcdef0123456789abcdef\""), to: "w/other"))
    #expect(try !client.copy("v/missing", try #require(tag), to: "w/other"))
    #expect(try client.get("w/copy.mp4", limit: bytes.count)?.bytes == bytes)
    #expect(try client.head("w/other") == nil)
    let empty = try client.put("empty", .file(scratch.file("nothing", [])), .text, when: .absent)
    #expect(try client.get("empty", limit: 0)?.bytes == [] && empty != nil)
  }

  /// Names that would leave the directory, links, and drafts of a dead writer are no objects.
  @Test func directoryHasNothingButItsFiles() throws {
    let outside = try scratch.directory("outside")
    try scratch.file("outside/secret", [1])
    let root = try scratch.directory("objects")
    let client = DirectoryObjects(root)
    symlink(outside, root + "/link")
    symlink(outside + "/secret", root + "/secret")
    try scratch.file("objects/.\(WorkerID()).part", [1])
    mkfifo(root + "/pipe", 0o600)
    #expect(try client.list("", after: nil).isEmpty)
    for key in ["link/secret", "secret", "pipe"] { #expect(try client.get(key, limit: 10) == nil, "\(key)") }
    let bad = ["", "/x", "x/", "a//b", "../outside/secret", "a/../../outside/x", ".", "a/./b", "a\0b", "./x"]
    for key in bad + [String(repeating: "n", count: 256), ".x.part", String(repeating: "d/", count: 600) + "x"] {
      #expect(throws: Failure.self, "\(key.prefix(40))") { try client.get(key, limit: 10) }
      #expect(throws: Failure.self, "\(key.prefix(40))") { try client.put(key, .bytes([1]), .text, when: .always) }
      #expect(throws: Failure.self, "\(key.prefix(40))") { try client.delete(key, nil) }
    }
    #expect(throws: (any Error).self) { try client.put("link/new", .bytes([1]), .text, when: .always) }
    #expect(try names(in: outside) == ["secret"])
  }
}
