import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import Sessions
@testable import WorkQueues

/// Files that a live playlist no longer names stay for viewers of the playlist before, and are removed then.
@Suite struct SupersededFilesTests {
  private let package: GrowingPackage
  private let graceMs = Int(SupersededFiles.graceMs)

  init() throws { package = try GrowingPackage() }

  private var list: String { package.output + "/.superseded/walk" }

  private func setTime(_ path: String, unixMs: Int64) {
    let time = timespec(tv_sec: Int(unixMs / 1_000), tv_nsec: 0)
    #expect(utimensat(AT_FDCWD, path, [time, time], AT_SYMLINK_NOFOLLOW) == 0)
  }

  @Test func listLeavesOutNamesThatAPackageDoesNotWrite() {
    let kept = [
      "1767859512340 gap.m4s", "5 init-750x1334-90c15cef.mp4", "-9 segment-1767859512340-00000000.m4s",
      "7 segment-1767859512340-90c15cef.m4s",
    ]
    let refused = [
      "1 ../gap.m4s", "1 session.m3u8", "1 segment-1767859512340.mp4", "1 segment-1-90c15cef.m4s", "1 init-stream0.mp4",
      "1 init-1x1-../..cef.mp4", "1 segment-1767859512340-90c15ceF.m4s", "1 init-x1-90c15cef.mp4", "gap.m4s",
      "x gap.m4s", "",
    ]
    let text = Array((refused + kept + refused).map { $0 + "\n" }.joined().utf8)
    #expect(String(decoding: SupersededFiles(text).text, as: UTF8.self) == kept.map { $0 + "\n" }.joined())
    #expect(SupersededFiles(text).due(atMs: 6) == ["init-750x1334-90c15cef.mp4"])
  }

  @Test func filesOfAnEndedPlaylistStayForItsDuration() {
    let live = Array("#EXTM3U\n".utf8)
    #expect(SupersededFiles.graceMs(after: live, durationMs: 60_000) == 300_000)
    #expect(SupersededFiles.graceMs(after: live + Array("#EXT-X-ENDLIST\n".utf8), durationMs: 60_000) == 360_000)
  }
  /// A batch from before the session's start changes every fragment.
  @Test func viewerOfThePreviousPlaylistGetsItsBytesUntilTheyAreRemoved() throws {
    let views = package.views()
    try package.publish(10..<12, views)
    let before = try snapshot(of: package.output + "/walk/hls").mapValues(\.bytes)
    try package.publish(0..<2, views)
    let media = try package.files().subtracting(package.wanted())
    #expect(media.count == 1 && Set(before.keys).isSuperset(of: media))
    let staging = try package.staging()
    package.pass(ms: graceMs - 1)
    #expect(views.flushPending(staging, all: true).isEmpty)
    let after = try snapshot(of: package.output + "/walk/hls").mapValues(\.bytes)
    for name in media { #expect(after[name] == before[name]) }
    package.pass(ms: 1)
    #expect(views.flushPending(staging, all: true).isEmpty)
    #expect(try package.files() == package.wanted())
    #expect(!DurableFile.exists(package.output + "/.superseded"))
  }

  /// The list was written, and the playlist was not.
  @Test func viewersKeepTheirTimeAfterAFailedReplacement() throws {
    let playlist = URL(fileURLWithPath: package.output + "/walk/hls/session.m3u8")
    try package.publish(10..<12, package.views())
    let before = try (text: Data(contentsOf: playlist), files: package.files())
    try package.publish(0..<2, package.views())
    try before.text.write(to: playlist)
    package.pass(ms: graceMs - 1_000)
    let views = package.views()
    try package.publish(2..<4, views)
    package.pass(ms: graceMs - 1)
    #expect(try views.flushPending(package.staging(), all: true).isEmpty)
    #expect(try package.files().isSuperset(of: before.files))
    package.pass(ms: 1)
    #expect(try views.flushPending(package.staging(), all: true).isEmpty)
    #expect(try package.files() == package.wanted())
  }

  @Test func filesOfAStoppedWorkerAreRemovedByTheNext() throws {
    try package.publish(10..<12, package.views())
    try package.publish(0..<2, package.views())
    #expect(try package.files() != package.wanted())
    package.pass(ms: graceMs)
    #expect(try package.views().flushPending(package.staging()).isEmpty)
    #expect(try package.files() == package.wanted())
  }

  @Test func gapFileIsRemovedWhenNoGapIsLeft() throws {
    let views = package.views()
    try package.publish(0..<2, views)
    #expect(try !package.files().contains("gap.m4s"))
    try package.publish(6..<8, views)
    #expect(try package.files().contains("gap.m4s"))
    try package.publish(2..<6, views)
    package.pass(ms: graceMs)
    try package.publish(8..<10, views)
    #expect(try package.files() == package.wanted() && !package.files().contains("gap.m4s"))
  }

  /// The worker died after it listed the files, before it replaced the playlist.
  @Test func fileThatThePlaylistNamesStays() throws {
    let views = package.views()
    try package.publish(0..<7, views)
    let before = try package.files()
    let lines = HLSPlaylist.files(
      in: try #require(try DurableFile.contents(of: package.output + "/walk/hls/session.m3u8", limit: .max))
    )
    .map { "1 \($0)\n" }
    #expect(lines.count == 3)
    _ = try package.scratch.directory("output/.superseded")
    try Data(lines.joined().utf8).write(to: URL(fileURLWithPath: list))
    #expect(try views.flushPending(package.staging(), all: true).isEmpty)
    #expect(try package.files() == before && !DurableFile.exists(list))
  }

  @Test func linkInPlaceOfAPackageIsNotFollowed() throws {
    let views = package.views()
    try package.publish(0..<2, views)
    let hls = package.output + "/walk/hls"
    #expect(rename(hls, package.scratch.path("elsewhere")) == 0 && symlink(package.scratch.path("elsewhere"), hls) == 0)
    let before = try names(in: package.scratch.path("elsewhere"))
    _ = try package.scratch.directory("output/.superseded")
    try Data("1 gap.m4s\n".utf8).write(to: URL(fileURLWithPath: list))
    try Data([1]).write(to: URL(fileURLWithPath: package.scratch.path("elsewhere/gap.m4s")))
    #expect(try views.flushPending(package.staging(), all: true).isEmpty)
    #expect(try names(in: package.scratch.path("elsewhere")) == (before + ["gap.m4s"]).sorted())
  }

  @Test func deletedSessionLeavesNoList() throws {
    try package.publish(10..<12, package.views())
    try package.publish(0..<2, package.views())
    #expect(DurableFile.exists(list))
    let tombstone = Tombstone(try package.session, deletedAtMs: 1, reason: "")
    _ = try SessionTombstones(output: package.output).add(tombstone)
    _ = try SessionRemoval(output: package.output, cancellation: .never).remove(package.session)
    #expect(try names(in: package.output).filter { $0 != ".staging" } == [".deleted"])
  }

  /// `prune` also removes files that no list has: those of an older version.
  @Test(arguments: [true, false]) func pruneRemovesFilesThatNoPlaylistNames(isListed: Bool) throws {
    try package.publish(10..<12, package.views())
    try package.publish(0..<2, package.views())
    if !isListed { unlink(list) }
    let spool = try Spool(creating: package.scratch.path("spool"))
    let superseded = try package.files().subtracting(package.wanted())
    func prune(atMs nowMs: Int64, isDryRun: Bool = false) throws -> [String] {
      setTime(package.output + "/walk/hls/session.m3u8", unixMs: package.unixMs)
      let run = Pruning(
        spool: spool, output: package.output, retention: Retention(nowMs: nowMs), isDryRun: isDryRun
      ).run(with: HeartbeatMonitor(lease: 10))
      #expect(run.failures.isEmpty)
      return run.pruned.map { lastComponent(of: $0.path) }
    }
    #expect(try prune(atMs: package.unixMs + Int64(graceMs) - 1_000).isEmpty)
    let laterMs = package.unixMs + Int64(graceMs) + 1_000
    #expect(try prune(atMs: laterMs, isDryRun: true) == superseded.sorted())
    #expect(try package.files() != package.wanted())
    #expect(try prune(atMs: laterMs) == superseded.sorted())
    #expect(try package.files() == package.wanted())
    #expect(!DurableFile.exists(package.output + "/.superseded"))
  }
}
