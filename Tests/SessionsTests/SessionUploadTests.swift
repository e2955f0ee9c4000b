import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// A session of a directory is published in a store with one write, whatever was stopped before.
@Suite struct SessionUploadTests {
  private let scratch: ScratchDirectory
  private let objects = MemoryObjects()
  private let directory: SessionDirectory

  init() throws {
    scratch = try ScratchDirectory()
    let session = try GeneratedSession(seed: 7, in: scratch)
    let output = scratch.path("output")
    let staging = try Staging(output: output, worker: WorkerID())
    let index = SessionViews()
    let encoder = BatchEncoder(BatchEncoder.Options(), staging: staging, index: index)
    for batch in session.batches { _ = try encoder.publish(batch) }
    #expect(index.flushPending(staging, all: true).isEmpty)
    staging.remove()
    directory = SessionDirectory(output: output, session: try #require(SessionID(session.name)))
  }

  private func store(_ layout: StoreLayout) throws -> ObjectStore {
    ObjectStore(
      objects, name: "s3://test/", staging: try Staging(scratch: scratch.path("own"), worker: WorkerID()),
      layout: layout)
  }

  private func files(_ path: String) throws -> [String: Data] {
    try FileManager.default.contentsOfDirectory(atPath: path).reduce(into: [:]) { files, name in
      if !name.hasPrefix(".") { files[name] = FileManager.default.contents(atPath: path + "/" + name) }
    }
  }

  private func copied() throws -> [String: Data] {
    let copy = try StoredSession(
      directory.session, of: StoredSessions(objects, name: "s3://test/"), in: scratch.directory("copy-\(UUID())"),
      part: .whole
    ) { _, _ in }
    try copy.writeIndex()
    try copy.fetchVideos(of: nil) { _, _ in }
    return try files(copy.path)
  }

  @Test(arguments: StoreLayout.allCases) func sessionIsPublishedAfterAKillBeforeAnyWrite(layout: StoreLayout) throws {
    #expect(try !store(layout).upload(directory, cancellation: .never))
    #expect(try copied() == files(directory.path))
    #expect(try store(layout).upload(directory, cancellation: .never))
    for key in objects.keys { objects[key] = nil }
    objects.fail(from: nil)
    _ = try store(layout).upload(directory, cancellation: .never)
    for write in 0..<objects.puts {
      for key in objects.keys { objects[key] = nil }
      objects.fail(from: write)
      #expect(throws: (any Error).self) { try store(layout).upload(directory, cancellation: .never) }
      objects.fail(from: nil)
      let isListed = objects["index/\(directory.session)/head.json"] != nil
      #expect(try store(layout).upload(directory, cancellation: .never) == isListed)
      #expect(try copied() == files(directory.path), "write \(write)")
    }
  }

  @Test func anotherSessionOfTheNameStays() throws {
    let store = try store(.plain)
    _ = try store.upload(directory, cancellation: .never)
    let before = objects.keys.map { objects[$0] }
    // A session with fewer segments.
    let other = scratch.path("other")
    try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: directory.path, toPath: "\(other)/\(directory.session)")
    let less = SessionDirectory(output: other, session: directory.session)
    let last = try #require(try less.publishedStarts().last)
    for name in [SegmentName.manifest(last), SegmentName.video(last)] { unlink(less.path + "/" + name) }
    #expect(throws: Failure.self) { try store.upload(less, cancellation: .never) }
    #expect(objects.keys.map { objects[$0] } == before)
    #expect(throws: Cancelled.self) {
      for key in objects.keys { objects[key] = nil }
      _ = try store.upload(directory, cancellation: Cancellation { true })
    }
    #expect(objects["index/\(directory.session)/head.json"] == nil)
  }
}
