import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import Sessions

/// Files of a session that has ended are made once, in a directory and in a store.
@Suite struct ExportedFileTests {
  private struct Broken: Error {}

  private let package: GrowingPackage
  private let id: SessionID

  init() throws {
    package = try GrowingPackage()
    id = try package.session
    try package.publish(0..<10, SessionViews())
    try package.publish(0..<10, package.store(nil, []))
  }

  private func stores() throws -> [any WorkerStore] {
    [DirectoryStore(staging: try package.staging(), index: SessionViews()), try package.store(nil, [])]
  }

  /// Returns the exported files of both places, by their names.
  private func files() throws -> [[String: String]] {
    let path = package.output + "/walk/exports"
    let prefix = "output/walk/exports/"
    let names = FileManager.default.fileExists(atPath: path) ? try TestSupport.names(in: path) : []
    let here = try names.map { ($0, try String(contentsOfFile: path + "/" + $0, encoding: .utf8)) }
    let there = package.objects.keys.filter { $0.hasPrefix(prefix) }.map { key in
      (String(key.dropFirst(prefix.count)), String(decoding: package.objects[key] ?? [], as: UTF8.self))
    }
    return [Dictionary(uniqueKeysWithValues: here), Dictionary(uniqueKeysWithValues: there)]
  }

  /// Writes the names of the session's videos.
  private func make(_ session: String, _ name: String, _ target: String) throws -> Bool {
    let videos = try FileManager.default.contentsOfDirectory(atPath: session).filter { $0.hasSuffix(".mp4") }
    try Data("\(name) of \(videos.count) videos".utf8).write(to: URL(fileURLWithPath: target))
    return true
  }

  @Test func eachIsMadeOnce() throws {
    let made = Mutex(0)
    for _ in 0..<2 {
      for store in try stores() {
        let files = try store.export(["a.mp4", "b.gif"], of: id, cancellation: .never) { session, name, target in
          made.withLock { $0 += 1 }
          return try make(session, name, target)
        }
        #expect(files?.map(\.name) == ["a.mp4", "b.gif"] && files?.map(\.bytes) == [17, 17])
      }
    }
    let wanted = ["a.mp4": "a.mp4 of 2 videos", "b.gif": "b.gif of 2 videos"]
    #expect(made.withLock { $0 } == 4)
    #expect(try files() == [wanted, wanted])
    #expect(try Verification.report(on: package.output + "/walk").problems == [])
    let path = try package.scratch.directory("check")
    let stored = try StoredSessions(package.objects, name: "s3://test/").verify(id, in: path) { _, _ in
    } progress: { _, _ in
    }
    #expect(stored.problems == [])
  }

  @Test func failureLeavesNoHalfFile() throws {
    for store in try stores() {
      #expect(throws: Broken.self) {
        try store.export(["a.mp4", "b.gif"], of: id, cancellation: .never) { session, name, target in
          if name == "b.gif" { throw Broken() }
          return try make(session, name, target)
        }
      }
    }
    #expect(try files().map { $0.keys.sorted() } == [["a.mp4"], ["a.mp4"]])
    for store in try stores() { _ = try store.export(["a.mp4", "b.gif"], of: id, cancellation: .never, make: make) }
    #expect(try files().map { $0.keys.sorted() } == [["a.mp4", "b.gif"], ["a.mp4", "b.gif"]])
  }

  @Test func fileThatCannotBeMadeDoesNotHoldUpTheOthers() throws {
    for store in try stores() {
      let files = try store.export(["a.mp4", "b.gif"], of: id, cancellation: .never) { session, name, target in
        try name == "b.gif" && make(session, name, target)
      }
      #expect(files?.map(\.name) == ["b.gif"])
    }
    #expect(try files().map { $0.keys.sorted() } == [["b.gif"], ["b.gif"]])
  }

  /// A session that is deleted while its film is made.
  @Test func deletedSessionGetsNone() throws {
    let stores = try stores()
    try FileManager.default.copyItem(atPath: package.output + "/walk", toPath: package.scratch.path("copied"))
    #expect(
      try stores[0].export(["a.mp4"], of: id, cancellation: .never) { session, name, target in
        try FileManager.default.removeItem(atPath: package.output + "/walk")
        return try make(package.scratch.path("copied"), name, target)
      } == nil)
    #expect(throws: SessionDeleted.self) {
      try stores[1].export(["a.mp4"], of: id, cancellation: .never) { session, name, target in
        let deletion = ObjectDeletion(package.objects, name: "s3://test/")
        _ = try deletion.add(Tombstone(id, deletedAtMs: 1, reason: "x"))
        _ = try deletion.remove(id)
        return try make(session, name, target)
      }
    }
    #expect(try files() == [[:], [:]])
    #expect(try stores[0].export(["a.mp4"], of: id, cancellation: .never, make: make) == nil)
  }
}
