import ISOMedia
import Synchronization

/// A frame to be encoded. Its pixels are decoded on demand, and it is encoded as a key frame once.
package final class SourceFrame {
  /// The picture as captured, in pixels.
  package let width: Int
  package let height: Int
  /// Changes to the picture that a viewer should know of.
  let notes: [String]
  /// Identifies the source: equal for equal pictures; nil if unknown.
  package let identity: String?
  /// The key frame of a segment that shows only this frame; nil until one is encoded.
  package internal(set) var key: KeyFrame?
  private(set) var isDecoded: Bool
  /// Whether its pixels are known to differ from those of the frame before it in its batch.
  var differsFromPrevious = false
  /// Decodes the files, or returns the decoded picture.
  private var load: () throws -> Picture

  package init(_ picture: Picture, notes: [String] = [], identity: String? = nil) {
    (width, height) = (picture.width, picture.height)
    self.notes = notes
    self.identity = identity
    isDecoded = true
    load = { picture }
  }

  /// A frame whose key frame is known.
  init(_ key: KeyFrame, identity: String, decode: @escaping () throws -> Picture) {
    (width, height) = (key.width, key.height)
    notes = key.notes
    self.identity = identity
    self.key = key
    isDecoded = false
    load = decode
  }

  package func picture() throws -> Picture {
    let picture = try load()
    if !isDecoded { (isDecoded, load) = (true, { picture }) }
    return picture
  }

  /// Whether it shows the same pixels.
  package func looksLike(_ other: SourceFrame) throws -> Bool {
    if self === other || identity != nil && identity == other.identity { return true }
    guard (width, height) == (other.width, other.height) else { return false }
    return try picture().looksLike(other.picture())
  }
}

/// An encoded key frame.
package struct KeyFrame: Sendable {
  /// The picture as captured, in pixels.
  let width: Int
  let height: Int
  let codedWidth: Int
  let codedHeight: Int
  /// Changes to the picture that a viewer should know of.
  let notes: [String]
  let parameterSets: ParameterSets
  /// NAL units behind their lengths.
  let data: [UInt8]
}

/// Caches the key frames of segments that showed one picture only: a batch of an unchanged screen is neither decoded nor
/// encoded. An identity names the session, so that no session shows the output of another session's decoder. Encoders with
/// the same options may share a cache.
package final class KeyFrameCache: Sendable {
  /// Maximum size, in bytes.
  private let capacity: Int
  /// The least recently used entry first.
  private let entries = Mutex<[(identity: String, key: KeyFrame)]>([])

  package init(capacity: Int = 8 << 20) { self.capacity = capacity }

  func recall(_ identity: String) -> KeyFrame? {
    entries.withLock { entries in
      guard let index = entries.lastIndex(where: { $0.identity == identity }) else { return nil }
      entries.append(entries.remove(at: index))
      return entries.last?.key
    }
  }

  /// Adds an entry, and evicts the least recently used ones.
  package func remember(_ key: KeyFrame, as identity: String) {
    entries.withLock { entries in
      entries.removeAll { $0.identity == identity }
      entries.append((identity, key))
      var bytes = entries.reduce(0) { $0 + Self.size(of: $1.key) }
      while bytes > capacity { bytes -= Self.size(of: entries.removeFirst().key) }
    }
  }

  func forget(_ identity: String) { entries.withLock { $0.removeAll { $0.identity == identity } } }

  /// The key frame's bytes and the maximum overhead of an entry.
  private static func size(of key: KeyFrame) -> Int { key.data.count + 4_096 }
}
