// The segments of a session in an object store, as objects of their own or in packs.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON

extension ObjectSession {
  /// Maximum size of a manifest, far above that of a segment of an earlier version.
  private static let manifestBytes = 64 << 20

  func segment(_ entry: SessionEntry) throws -> PublishedSegment { try manifest(entry).segment }

  /// - Throws: ``DamagedOutput``.
  func manifest(_ entry: SessionEntry) throws -> (segment: PublishedSegment, json: JSONValue) {
    try manifests(of: [entry])[0]
  }

  /// - Parameter group: one segment, or several of one pack.
  /// - Throws: ``DamagedOutput``.
  func manifests(of group: [SessionEntry]) throws -> [(segment: PublishedSegment, json: JSONValue)] {
    let name = name + manifestKey(group[0])
    guard let texts = try manifestTexts(of: group, limit: Self.manifestBytes) else {
      throw DamagedOutput(path: name, cause: "missing")
    }
    return try zip(group, texts).map { try SegmentManifest.read($1, of: $0.startMs, path: name) }
  }

  /// Returns what playlists tell of the fragments of segments of one pack; nil for a damaged one.
  ///
  /// - Throws: ``DamagedOutput`` if there is no object, or it is too short.
  func layouts(of group: [SessionEntry]) throws -> [HLSLayout?] {
    let places = group.compactMap(\.pack)
    guard let fragments = try parts(of: places, \.fragment) else {
      throw DamagedOutput(path: name + videoKey(group[0]), cause: "missing")
    }
    return zip(places, fragments).map { place, bytes in
      (try? MP4PackFragment(reading: bytes)).map { HLSLayout(of: $0, at: place.fragment) }
    }
  }

  /// Returns the segment that an object of its own describes, whether the index lists it or not.
  ///
  /// - Throws: ``DamagedOutput``.
  func segment(at startMs: Int64) throws -> PublishedSegment {
    let key = key(SegmentName.manifest(startMs))
    guard let there = try objects.get(key, limit: Self.manifestBytes) else {
      throw DamagedOutput(path: name + key, cause: "missing")
    }
    return try SegmentManifest.read(there.bytes, of: startMs, path: name + key).segment
  }

  /// Returns the texts of manifests; nil if there is no object.
  ///
  /// - Parameter group: one segment, or several of one pack.
  /// - Throws: ``ObjectTooLarge``.
  func manifestTexts(of group: [SessionEntry], limit: Int) throws -> [[UInt8]]? {
    guard group[0].pack != nil else {
      return try objects.get(manifestKey(group[0]), limit: limit).map { [$0.bytes] }
    }
    let places = group.compactMap(\.pack)
    guard places.allSatisfy({ $0.manifest.count <= limit }) else {
      throw ObjectTooLarge(key: manifestKey(group[0]), limit: limit)
    }
    return try parts(of: places, \.manifest)
  }

  /// Returns the files of segments of one pack, made from their fragments; nil if there is no object, or it is too short.
  ///
  /// - Throws: ``DamagedOutput`` if a fragment is none.
  func packedVideos(of group: [SessionEntry]) throws -> [[UInt8]]? {
    guard let fragments = try parts(of: group.compactMap(\.pack), \.fragment) else { return nil }
    do throws(SegmentMismatch) {
      return try fragments.map { (fragment) throws(SegmentMismatch) in try PackedSegment.file(of: fragment) }
    } catch {
      throw DamagedOutput(path: name + videoKey(group[0]), cause: error.description)
    }
  }

  /// Fetches parts of a pack with one request.
  private func parts(of places: [PackPlace], _ part: KeyPath<PackPlace, Range<Int>>) throws -> [[UInt8]]? {
    let ranges = places.map { $0[keyPath: part] }
    guard let first = ranges.first, let last = ranges.last,
      zip(ranges, ranges.dropFirst()).allSatisfy({ $0.upperBound <= $1.lowerBound })
    else { throw DamagedOutput(path: name + headKey, cause: "entries: a pack out of order") }
    let start = first.lowerBound
    return try objects.get(key(places[0].file), in: start..<last.upperBound).map { there in
      ranges.map { Array(there.bytes[$0.lowerBound - start..<$0.upperBound - start]) }
    }
  }

  /// Writes a segment's video to a new file.
  ///
  /// - Throws: ``DamagedOutput`` if there is none; ``DiskError``.
  func downloadVideo(_ entry: SessionEntry, to path: String) throws {
    let isThere: Bool
    if entry.pack == nil {
      isThere = try objects.download(videoKey(entry), to: path, limit: entry.bytes) != nil
    } else {
      let videos = try packedVideos(of: [entry])
      if let video = videos?.first { try DurableFile.create(path, video, isDurable: false) }
      isThere = videos != nil
    }
    guard isThere else { throw DamagedOutput(path: name + videoKey(entry), cause: "missing") }
  }

  /// The key of the object with the manifest.
  func manifestKey(_ entry: SessionEntry) -> String { key(entry.pack?.file ?? SegmentName.manifest(entry.startMs)) }

  /// The key of the object with the video.
  func videoKey(_ entry: SessionEntry) -> String { key(entry.pack?.file ?? entry.file) }

  /// Returns the seconds since a segment was published, by the store's clock; nil if the store does not tell them, or the object is
  /// gone.
  func ageS(of entry: SessionEntry) throws -> Int? { try objects.head(manifestKey(entry))?.ageS }
}
