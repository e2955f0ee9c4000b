import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import Sessions

/// Each view of the list keeps the promises of `SessionView`.
@Suite struct ViewPromiseTests {
  private let package: GrowingPackage
  private let session: SessionDirectory

  init() throws {
    package = try GrowingPackage()
    session = SessionDirectory(output: package.output, session: try package.session)
    try package.publish(0..<55, SessionViews())
  }

  private func isPresent(_ view: any SessionView) throws -> Bool {
    try view.isPresent(in: session, Directory(opening: session.path).entries())
  }

  /// The bytes of a view's files, by their paths.
  private func files(of view: any SessionView, _ segments: [PublishedSegment]) throws -> [String: Data] {
    let own = Set(view.names(of: segments))
    return try snapshot(of: session.path).mapValues(\.bytes).filter { file in
      own.contains(String(file.key.prefix { $0 != "/" }))
    }
  }

  /// Moves the files of segments out of the session, or back.
  private func move(_ segments: some Sequence<PublishedSegment>, from source: String, to target: String) throws {
    for name in segments.flatMap({ [$0.file, SegmentName.manifest($0.startMs)] }) {
      try FileManager.default.moveItem(atPath: source + "/" + name, toPath: target + "/" + name)
    }
  }

  @Test(arguments: ViewList.all)
  func viewIsExtendedAsItIsRebuiltAndLeavesNothing(view: any SessionView) throws {
    let segments = try session.publishedStarts().map(session.segment)
    #expect(segments.count == 11)
    let update = ViewUpdate(
      directory: session, releasedMs: .max, temporary: package.output + "/part", nowMs: package.unixMs
    ) { _, _ in }
    let elsewhere = try package.scratch.directory("elsewhere")
    try move(segments[9...], from: session.path, to: elsewhere)
    let cache = try #require(try update.rebuild(view.kind).cache)
    #expect(try cache.views == view.kind && isPresent(view))
    let before = try files(of: view, segments)

    try move(segments[9...], from: elsewhere, to: session.path)
    #expect(try update.add(Array(segments[9...]), to: cache) != nil)
    let extended = try files(of: view, segments)
    #expect(!before.isEmpty && extended != before)
    // Verification takes none of its files for an orphan.
    #expect(try Verification.report(on: session.path).problems == [])

    for name in view.names(of: segments) { try DurableFile.removeTree(session.path + "/" + name) }
    #expect(try !isPresent(view))
    _ = try update.rebuild(view.kind)
    #expect(try files(of: view, segments) == extended)

    try move(segments, from: session.path, to: elsewhere)
    _ = try update.rebuild(view.kind)
    #expect(try names(in: session.path) == [])
    try view.forget(session.session, output: package.output)
    #expect(try names(in: package.output).filter { $0 != ".staging" } == ["walk"])
  }

  /// Caches of running and of older workers have these bits.
  @Test func everyViewButTheIndexHasABitOfItsOwn() {
    let bits = ViewList.all.map(\.kind.rawValue).filter { $0 != 0 }
    #expect(bits.count == ViewList.all.count - 1 && Set(bits).count == bits.count)
    #expect(bits.allSatisfy { $0.nonzeroBitCount == 1 })
    #expect([ViewKinds.sentry, .hls, .thumbnails].map(\.rawValue) == [1, 2, 4])
  }
}
