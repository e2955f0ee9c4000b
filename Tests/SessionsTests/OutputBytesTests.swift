import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import Sessions

/// The bytes of the disk that sessions take.
@Suite struct OutputBytesTests {
  private let package: GrowingPackage
  private let bytes: OutputBytes
  private var path: String { package.output + "/walk" }

  init() throws {
    package = try GrowingPackage()
    bytes = OutputBytes(output: package.output)
  }

  @Test func allFilesCount() throws {
    try package.publish(0..<30, package.views())
    _ = try package.scratch.directory("output/walk/thumbnails")
    try package.scratch.file("output/walk/thumbnails/segment-1767859512340.jpg", [UInt8](repeating: 1, count: 9_000))
    try package.scratch.file("output/walk/segment-1767859512340.text.json", [1])
    _ = try package.scratch.directory("output/walk/exports")
    try package.scratch.file("output/walk/exports/film.mp4", [UInt8](repeating: 1, count: 50_000))
    let found = try #require(try bytes.bytes(of: package.session))
    #expect(found.shared > 50_000)
    #expect(try found.all == diskBytes(of: path) && found.superseded == 0 && found.segments == 6)
    #expect(found.videos > 0 && found.live > 0 && found.described > 9_000 && found.shared > 0)
    #expect(try bytes.bytes(of: #require(SessionID("missing"))) == nil)
  }

  @Test func filesThatNoPlaylistNamesAreCountedApart() throws {
    try package.publish(0..<30, package.views())
    let before = try #require(try bytes.bytes(of: package.session))
    let name = "segment-1767859000000-90c15cef.m4s"
    try package.scratch.file("output/walk/hls/\(name)", [UInt8](repeating: 1, count: 9_000))
    _ = try package.scratch.directory("output/.superseded")
    try package.scratch.file("output/.superseded/walk", Array("1 \(name)\n".utf8))
    let after = try #require(try bytes.bytes(of: package.session))
    #expect(after.superseded == OutputBytes.size(of: path + "/hls/" + name) && after.superseded >= 9_000)
    #expect(after.live == before.live && after.lasting == before.lasting)
  }

  @Test func unchangedSessionIsNotLookedAtAgain() throws {
    try package.publish(0..<10, package.views())
    let laterMs = WallClock.nowMs + 10_000
    func count() throws -> Int { try #require(try bytes.bytes(of: package.session, nowMs: laterMs)).all }
    let first = try count()
    // No directory changes with the contents of a file. Files of a session are never written in place.
    let file = FileHandle(forWritingAtPath: path + "/session.json")
    try file?.truncate(atOffset: 1 << 20)
    try file?.write(contentsOf: [UInt8](repeating: 1, count: 100_000))
    #expect(try count() == first)
    _ = try package.scratch.directory("output/walk/exports")
    for place in ["", "/hls", "/exports"] {
      let before = try count()
      try package.scratch.file("output/walk\(place)/new", [UInt8](repeating: 1, count: 50_000))
      #expect(try count() >= before + 50_000, "\(place)")
    }
    // A change in the same tick as the count leaves the times as they are, so a young count is not kept.
    let young = OutputBytes(output: package.output)
    let session = try package.session
    let now = try #require(try young.bytes(of: session)).all
    try file?.write(contentsOf: [UInt8](repeating: 1, count: 300_000))
    #expect(try #require(try young.bytes(of: session)).all > now)
  }

  @Test func fewOfVeryManyFilesTellTheirSize() throws {
    _ = try package.scratch.directory("output/walk")
    for number in 0..<6_000 {
      let size = number % 3 == 0 ? 9_000 : 1
      try package.scratch.file("output/walk/\(number)", [UInt8](repeating: 1, count: size))
    }
    let found = try #require(try bytes.bytes(of: package.session))
    #expect(try abs(found.all - diskBytes(of: path)) < diskBytes(of: path) / 10)
  }
}
