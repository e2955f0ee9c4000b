import FileSystem
import Foundation
import FrameBatches
import TestSupport
import Testing

@testable import Showing

/// The kept list over a directory.
@Suite struct ListedOutputTests {
  private let scratch: ScratchDirectory
  private let output: String
  private let catalog: SessionCatalog

  init() throws {
    scratch = try ScratchDirectory()
    output = try scratch.directory("output")
    catalog = try SessionCatalog(of: output)
    for name in ["a", "b"] { try write(name, startMs: name == "a" ? 1_000 : 2_000) }
    #expect(try names() == ["b", "a"])
  }

  private func write(_ name: String, startMs: Int64, session: String? = nil) throws {
    try FileManager.default.createDirectory(atPath: output + "/" + name, withIntermediateDirectories: true)
    let text = """
      {"bytes":1,"complete":false,"durationMs":1,"endMs":\(startMs + 1),"frames":1,"gaps":[],"segments":[],\
      "session":"\(session ?? name)","startMs":\(startMs)}
      """
    // As workers do: a new file takes the place of the old one.
    try scratch.file("draft", Array(text.utf8))
    #expect(rename(scratch.path("draft"), output + "/\(name)/session.json") == 0)
  }

  /// The list is kept between calls.
  private func names() throws -> [String] { try catalog.listing.summaries().map(\.session.description) }

  @Test func newChangedRenamedAndRemovedSessionsAreSeenAtOnce() throws {
    try write("c", startMs: 1_500)
    #expect(try names() == ["b", "c", "a"])
    try write("a", startMs: 3_000)
    #expect(try names() == ["a", "b", "c"])
    #expect(rename(output + "/b", output + "/z") == 0)
    #expect(try names() == ["a", "z", "c"])
    try FileManager.default.removeItem(atPath: output + "/z")
    #expect(try names() == ["a", "c"])
    try FileManager.default.removeItem(atPath: output + "/c/session.json")
    #expect(try names() == ["a"])
    // Gone and there again, between two calls.
    try FileManager.default.removeItem(atPath: output + "/a")
    try write("a", startMs: 7)
    #expect(try catalog.listing.summaries().map(\.startMs) == [7])
  }

  @Test func deletedSessionIsNotListedFromItsTombstoneOn() throws {
    _ = try scratch.directory("output/.deleted")
    try scratch.file("output/.deleted/b.json", [])
    #expect(try names() == ["a"])
    #expect(try catalog.listing.totals().sessions == 1)
    try FileManager.default.removeItem(atPath: output + "/.deleted/b.json")
    #expect(try names() == ["b", "a"])
  }

  @Test func filesLinksAndOtherNamesAreNoSessions() throws {
    try scratch.file("output/file", [])
    symlink("a", output + "/link")
    try write(".hidden", startMs: 1)
    try write("with blank", startMs: 1)
    #expect(try names() == ["b", "a"])
  }

  @Test func sessionThatCannotBeReadIsFirstAndSaysWhy() throws {
    try scratch.file("output/a/session.json", Array("{".utf8))
    let first = try #require(try catalog.listing.summaries().first)
    #expect(first.session.description == "a" && first.startMs == nil && first.error?.contains("session.json") == true)
    try write("a", startMs: 1)
    #expect(try names() == ["b", "a"])
  }

  @Test func outputThatCannotBeReadIsAnErrorAndTheListComesBack() throws {
    #expect(rename(output, output + "-away") == 0)
    #expect(throws: DiskError.self) { try names() }
    #expect(rename(output + "-away", output) == 0)
    #expect(try names() == ["b", "a"])
  }
}
