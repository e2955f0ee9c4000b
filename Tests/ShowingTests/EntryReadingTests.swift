import Foundation
import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions
@testable import Showing

/// The manifests of a session that is read on several threads.
@Suite struct EntryReadingTests {
  private let package: GrowingPackage
  private let directory: SessionDirectory
  private let manifest: JSONValue

  init() throws {
    package = try GrowingPackage()
    try package.publish(0..<5, package.views())
    directory = SessionDirectory(output: package.output, session: try package.session)
    manifest = try directory.soundManifest(GrowingPackage.startMs).json
  }

  private func start(_ number: Int) -> Int64 { GrowingPackage.startMs + Int64(number) * 5_000 }

  private func path(_ number: Int) -> URL {
    URL(fileURLWithPath: directory.path + "/" + SegmentName.manifest(start(number)))
  }

  /// Returns a manifest of the segment with a number.
  private func manifest(_ number: Int) throws -> JSONValue {
    let frames = try #require(manifest.object?["frames"]?.array)
    let shiftMs = Int64(number) * 5_000
    return manifest.setting([
      "startMs": .number(start(number)), "endMs": .number(start(number + 1)), "part": .number(1), "parts": .number(1),
      "file": .string(SegmentName.video(start(number))), "batchDigest": .string("\(number)"),
      "frames": .array(
        frames.map { $0.setting(["timeMs": .number(($0.object?["timeMs"]?.integer ?? 0) + shiftMs)]) }),
    ])
  }

  private func read(
    cached: [Int64: SessionPlayback.Entry] = [:]
  ) throws -> (entries: [SessionPlayback.Entry], problems: [Problem]) {
    let opened = try Directory(opening: directory.path)
    return EntryReading(of: try SessionNames(in: opened).manifests, labels: [], in: directory, opened, cached: cached)
      .read()
  }

  @Test func manifestsAreInOrderWithTheirProblems() throws {
    let count = 3 * EntryReading.manifestsAtOnce + 7
    let damaged = [5, 300, 301, 700]
    for number in 0..<count {
      let text = damaged.contains(number) ? Array("{".utf8) : SegmentManifest.text(of: try manifest(number))
      try Data(text).write(to: path(number))
    }
    let (entries, problems) = try read()
    #expect(entries.map(\.segment.startMs) == (0..<count).filter { !damaged.contains($0) }.map(start))
    #expect(problems.map(\.file) == damaged.map { SegmentName.manifest(start($0)) })
    #expect(try entries.allSatisfy { try $0.segment == directory.soundManifest($0.segment.startMs).segment })
    // Only the changed one is read again.
    let before = Dictionary(uniqueKeysWithValues: entries.map { ($0.segment.startMs, $0) })
    let other = try manifest(9).setting(["pages": .array([.array([.number(0), .string("https://a.example/")])])])
    try Data(SegmentManifest.text(of: other)).write(to: path(9))
    let later = try read(cached: before).entries
    #expect(later.map(\.identity).enumerated().filter { $1 != entries[$0].identity }.map(\.offset) == [8])
  }

  /// The digest is that of the facts, however they are written.
  @Test func digestsAreCheckedInEachForm() throws {
    let sealed = try JSONParser.parse(SegmentManifest.text(of: manifest(1)))
    let text = sealed.bytes()
    let forms = [text, text + Array(" \n".utf8), sealed.bytes(pretty: true), Array(" ".utf8) + text]
    for form in forms {
      try Data(form).write(to: path(1))
      #expect(try read().problems == [])
      // Another fact, in the same form.
      let text = String(decoding: form, as: UTF8.self)
      let forged = text.replacingOccurrences(of: "captured", with: "capturex", range: text.range(of: "captured"))
      #expect(forged != text)
      try Data(forged.utf8).write(to: path(1))
      let problem = try #require(try read().problems.first)
      #expect(problem.file == SegmentName.manifest(start(1)) && problem.what.contains("edited"))
    }
    // Facts in another order have the digest of their order, not of the text.
    let unordered = "{\"zz\":1," + String(decoding: sealed.bytes().dropFirst(), as: UTF8.self)
    let rest = try JSONParser.parse(Array(unordered.utf8))
    var members = try #require(rest.object)
    let digest = try #require(members["manifestSha256"]?.string)
    members["manifestSha256"] = nil
    let cut = unordered.replacingOccurrences(of: ",\"manifestSha256\":\"\(digest)\"", with: "")
    let forged = unordered.replacingOccurrences(of: digest, with: SHA256.hex(of: Array(cut.utf8)))
    try Data(forged.utf8).write(to: path(1))
    #expect(try read().problems.map(\.file) == [SegmentName.manifest(start(1))])
    let soundText = unordered.replacingOccurrences(of: digest, with: SHA256.hex(of: JSONValue.object(members).bytes()))
    try Data(soundText.utf8).write(to: path(1))
    #expect(try read().problems == [])
  }
}
