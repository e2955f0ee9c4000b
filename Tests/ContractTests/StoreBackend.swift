import Encoding
import FileSystem
import Foundation
import FrameBatches
import TestSupport
import Testing

@testable import Deleting
@testable import SegmentEncoder
@testable import Sessions

/// A store for one test.
protocol StoreBackend {
  /// Returns a worker's end of the store.
  func store() throws -> any ArtifactStore
  /// The published videos and manifests: `SESSION/segment-….mp4`, `SESSION/segment-….json`.
  func segments() throws -> [String: [UInt8]]
  /// A published file, such as `SESSION/session.json`; nil if there is none.
  func file(_ path: String) throws -> [UInt8]?
  /// Makes all views fail that are written from now on, or no more.
  func blockViews(_ isBlocked: Bool) throws
  /// The place of its deletions; nil if only its owner deletes sessions.
  var deletion: (any DeletionPlace)? { get throws }
}

/// The stores that the program and the library have. A new one is added here, and has to pass ``StoreContractTests``.
enum StoreKind: String, CaseIterable, CustomTestStringConvertible {
  case directory
  case objects
  case packed
  case embedders

  /// Whether it knows earlier batches: it reports a repeated one, and refuses other content for the same time. An embedder's
  /// store only has to leave what is there as it is.
  var knowsEarlierBatches: Bool { self != .embedders }

  var testDescription: String { rawValue }

  func backend() throws -> any StoreBackend {
    switch self {
    case .directory: try DirectoryBackend()
    case .objects: try ObjectBackend(.plain)
    case .packed: try ObjectBackend(.packed)
    case .embedders: EmbedderBackend()
    }
  }
}

private func isSegment(_ name: String) -> Bool {
  let parts = name.split(separator: "/")
  return parts.count == 2 && parts[1].hasPrefix("segment-") && (name.hasSuffix(".mp4") || name.hasSuffix(".json"))
}

private struct DirectoryBackend: StoreBackend {
  private let scratch: ScratchDirectory
  private let output: String

  init() throws {
    scratch = try ScratchDirectory()
    output = try scratch.directory("output")
  }

  func store() throws -> any ArtifactStore {
    DirectoryStore(staging: try Staging(output: output, worker: WorkerID()), index: SessionViews(.hls))
  }

  func segments() throws -> [String: [UInt8]] {
    var found: [String: [UInt8]] = [:]
    for case let name as String in try #require(FileManager.default.enumerator(atPath: output)) where isSegment(name) {
      found[name] = try DurableFile.contents(of: output + "/" + name, limit: .max)
    }
    return found
  }

  func file(_ path: String) throws -> [UInt8]? { try DurableFile.contents(of: output + "/" + path, limit: .max) }

  /// A playlist cannot be renamed to a directory.
  func blockViews(_ isBlocked: Bool) throws {
    for session in try names(in: output).filter({ !$0.hasPrefix(".") }) {
      let (playlist, kept) = ("\(output)/\(session)/hls/session.m3u8", "\(output)/.kept.m3u8")
      if isBlocked {
        try FileManager.default.moveItem(atPath: playlist, toPath: kept)
        try FileManager.default.createDirectory(atPath: playlist + "/x", withIntermediateDirectories: true)
      } else {
        try FileManager.default.removeItem(atPath: playlist)
        try FileManager.default.moveItem(atPath: kept, toPath: playlist)
      }
    }
  }

  var deletion: (any DeletionPlace)? {
    DirectoryDeletionPlace(output: output, spool: nil, BatchIdentifier(unpacker: nil))
  }
}

private struct ObjectBackend: StoreBackend {
  private static let name = "s3://test/"
  private let scratch: ScratchDirectory
  private let objects = MemoryObjects()
  private let layout: StoreLayout

  init(_ layout: StoreLayout) throws {
    scratch = try ScratchDirectory()
    self.layout = layout
  }

  private func staging() throws -> Staging { try Staging(scratch: scratch.path("own"), worker: WorkerID()) }

  func store() throws -> any ArtifactStore {
    ObjectStore(objects, name: Self.name, staging: try staging(), .hls, findsQuiet: true, layout: layout)
  }

  func segments() throws -> [String: [UInt8]] {
    if layout == .packed { return try packedSegments() }
    let output = objects.keys.filter { $0.hasPrefix("output/") }
    return Dictionary(
      uniqueKeysWithValues: output.map { (String($0.dropFirst("output/".count)), objects[$0] ?? []) }
        .filter { isSegment($0.0) })
  }

  /// Copies of the published segments.
  private func packedSegments() throws -> [String: [UInt8]] {
    let sessions = StoredSessions(objects, name: Self.name)
    var files: [String: [UInt8]] = [:]
    for id in try sessions.ids(below: ["index/"]) where (try? sessions.session(id).head().published) != nil {
      let copy = try StoredSession(id, of: sessions, in: scratch.directory("copy-\(UUID())"), part: .whole) { _, _ in }
      try copy.fetchVideos(of: nil) { _, _ in }
      for name in try names(in: copy.path) where isSegment("\(id)/\(name)") {
        files["\(id)/\(name)"] = try DurableFile.contents(of: copy.path + "/" + name, limit: .max)
      }
    }
    return files
  }

  /// Before its end, only readers make the index of a packed session.
  func file(_ path: String) throws -> [UInt8]? {
    let parts = path.split(separator: "/").map(String.init)
    guard layout == .packed, parts[1] == IndexText.jsonFile, objects["output/" + path] == nil,
      let id = SessionID(parts[0])
    else { return objects["output/" + path] }
    let sessions = StoredSessions(objects, name: Self.name)
    let index = try StoredIndex(of: sessions.session(id))
    return try index.views(of: index.entries(of: .whole) { _, _ in })[0].bytes
  }

  /// The first request after the head's fails.
  func blockViews(_ isBlocked: Bool) { objects.fail(from: isBlocked ? 2 : nil) }

  var deletion: (any DeletionPlace)? {
    get throws { StoreDeletionPlace(objects, name: Self.name, staging: try staging(), BatchIdentifier(unpacker: nil)) }
  }
}

/// A store of an embedder, through the public protocol.
private struct EmbedderBackend: StoreBackend {
  private let memory = MemoryStore()

  func store() -> any ArtifactStore { EmbeddedStore(store: memory) }

  func segments() throws -> [String: [UInt8]] {
    var files: [String: [UInt8]] = [:]
    for session in ["generated-7", "short"] {
      for segment in memory.segments(of: try #require(SessionID(session))) {
        files["\(session)/\(segment.videoName)"] = segment.video
        files["\(session)/\(segment.manifestName)"] = segment.manifest
      }
    }
    return files
  }

  func file(_ path: String) -> [UInt8]? { nil }

  func blockViews(_ isBlocked: Bool) {}

  var deletion: (any DeletionPlace)? { nil }
}
