import Encoding
import FileSystem
import FrameBatches
import Glibc

/// Copies the objects of a session, each checked against its entry in the index. For several threads.
struct StoredObjects: Sendable {
  /// The number of times that an object is fetched: a network or a cache may have changed it on its way.
  private static let attempts = 2

  let session: ObjectSession
  /// The directory of the copy.
  let path: String
  let damage: StoredSession.Damage

  /// Copies the manifests of segments that one request fetches: see ``PackPlace/groups(of:limit:_:)``.
  func fetchManifests(of group: [SessionEntry]) throws {
    var latest: [[UInt8]] = []
    try fetch(session.manifestKey(group[0])) { () throws -> String? in
      latest = []
      guard let texts = try session.manifestTexts(of: group, limit: SegmentManifest.maximumBytes) else {
        return "missing"
      }
      latest = texts
      return zip(texts, group).lazy.compactMap(fault).first
    }
    for (text, entry) in zip(latest, group) {
      try DurableFile.create(path + "/" + SegmentName.manifest(entry.startMs), text, isDurable: false)
    }
  }

  /// Copies the manifests of segments that one request fetches. In the place of one that is missing, or not the one that the index lists, it
  /// makes an empty file.
  ///
  /// - Returns: the faults, by the starts of their segments.
  func markedManifests(of group: [SessionEntry]) throws -> [Int64: BadSession] {
    do {
      try fetchManifests(of: group)
      return [:]
    } catch let bad as BadSession where bad.file != session.place {
      guard group.count == 1 else {
        return try group.reduce(into: [:]) { try $0.merge(markedManifests(of: [$1])) { $1 } }
      }
      try DurableFile.create(path + "/" + SegmentName.manifest(group[0].startMs), [], isDurable: false)
      return [group[0].startMs: bad]
    }
  }

  /// Returns why bytes are not the manifest that the index lists; nil if they are.
  private func fault(_ bytes: [UInt8], _ entry: SessionEntry) -> String? {
    do throws(DamagedOutput) {
      let (segment, json, seal) = try SegmentManifest.readSealed(bytes, of: entry.startMs, path: "")
      if json.object?["session"]?.string != session.id.description { return "of another session" }
      if seal != json.object?[SegmentManifest.sealKey]?.string { return "edited: its digest is another" }
      return (segment.bytes, segment.sha256) == (entry.bytes, entry.sha256)
        ? nil : "the manifest of another video than the index lists"
    } catch {
      return error.cause
    }
  }

  func fetchVideo(of entry: SessionEntry) throws { try fetchVideos(of: [entry]) }

  /// Copies the videos of segments that one request fetches.
  func fetchVideos(of group: [SessionEntry]) throws {
    let key = session.videoKey(group[0])
    try fetch(key) { () throws -> String? in
      for entry in group { unlink(path + "/" + entry.file) }
      guard group[0].pack == nil else { return try unpack(group) }
      // Readers refuse a larger one.
      let limit = min(group[0].bytes, SegmentManifest.maximumVideoBytes)
      guard try session.objects.download(key, to: path + "/" + group[0].file, limit: limit) != nil else {
        return "missing"
      }
      return try fault(ofVideoOf: group[0])
    }
    let file = path + "/" + group[0].file
    if damage == .kept, group[0].pack == nil, !DurableFile.exists(file), let size = try session.objects.head(key)?.size
    {
      try standIn(for: group[0].file, of: size)
    }
  }

  /// Makes the files of segments from their fragments.
  ///
  /// - Returns: the fault of the first that has one.
  private func unpack(_ group: [SessionEntry]) throws -> String? {
    do {
      guard let videos = try session.packedVideos(of: group) else { return "missing" }
      for (video, entry) in zip(videos, group) {
        try DurableFile.create(path + "/" + entry.file, video, isDurable: false)
        if let fault = try fault(ofVideoOf: entry) { return fault }
      }
      return nil
    } catch let damage as DamagedOutput {
      return damage.cause
    }
  }

  /// Returns why a file is not the video that the index lists; nil if it is.
  private func fault(ofVideoOf entry: SessionEntry) throws -> String? {
    let file = path + "/" + entry.file
    let size = try DurableFile.size(of: file)
    if size != entry.bytes { return "\(size) bytes instead of \(entry.bytes)" }
    return try SHA256.hex(ofFile: file, cancellation: .never) == entry.sha256
      ? nil : "other bytes than those that were published"
  }

  /// Copies an object that no index describes, such as a view.
  ///
  /// - Parameter size: as the store lists it.
  func fetchView(_ name: String, of size: Int) throws {
    guard size <= IndexText.maximumBytes else { return try standIn(for: name, of: size) }
    do {
      _ = try session.objects.download(session.key(name), to: path + "/" + name, limit: size)
    } catch is ObjectTooLarge {
      try standIn(for: name, of: size + 1)
    }
  }

  /// Makes a file for an object whose size alone says that it is wrong. It takes no room.
  private func standIn(for name: String, of size: Int) throws {
    let file = path + "/" + name
    try DurableFile.create(file, [], isDurable: false)
    try check("truncate", file) { truncate(file, off_t(min(size, SegmentManifest.maximumVideoBytes + 1))) }
  }

  /// Fetches an object, again if it is not as it should be.
  ///
  /// - Parameter body: returns the fault of the object; nil if it has none.
  /// - Throws: ``BadSession`` if damage is refused.
  private func fetch(_ key: String, _ body: () throws -> String?) throws {
    var fault = ""
    for _ in 0..<Self.attempts {
      do {
        guard let found = try body() else { return }
        fault = found
      } catch let large as ObjectTooLarge {
        fault = "more than \(large.limit) bytes"
      }
    }
    guard damage == .refused else { return }
    if let tombstone = try session.tombstone() {
      throw BadSession(session.place, SessionDeleted(tombstone).what, advice: "name another session")
    }
    throw BadSession(session.name + key, fault, advice: StoredIndex.advice)
  }
}
