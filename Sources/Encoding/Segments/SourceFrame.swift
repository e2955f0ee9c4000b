import CFFmpeg
import ISOMedia
import Synchronization

/// A frame to be encoded. Its pixels are decoded on demand, and it is encoded as a key frame once.
package final class SourceFrame {
  /// The picture as captured, in pixels.
  package let width: Int
  package let height: Int
  /// A change to the picture that a viewer should know of.
  package let notes: [String]
  /// The identity of the source: equal for equal pictures, whatever they are decoded to; nil if unknown.
  package let identity: String?
  /// A segment that shows nothing else begins with it; nil until one was coded.
  package var key: KeyFrame?
  private var decoded: Picture?
  /// The files; nil once they are not needed any more.
  private var decode: (() throws -> Picture)?

  var isDecoded: Bool { decoded != nil }

  package init(_ picture: Picture, notes: [String] = [], identity: String? = nil) {
    (width, height) = (picture.width, picture.height)
    self.notes = notes
    self.identity = identity
    decoded = picture
  }

  /// A frame that was coded before.
  package init(_ key: KeyFrame, identity: String, decode: @escaping () throws -> Picture) {
    (width, height) = (key.width, key.height)
    notes = key.notes
    self.identity = identity
    self.key = key
    self.decode = decode
  }

  package func picture() throws -> Picture {
    if let decoded { return decoded }
    // One of the two is always there.
    guard let picture = try decode?() else { throw FFmpegError(function: "decode", code: cff_error_invalid_data()) }
    decoded = picture
    decode = nil
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
  package let width: Int
  package let height: Int
  package let codedWidth: Int
  package let codedHeight: Int
  /// A change to the picture that a viewer should know of.
  package let notes: [String]
  package let parameterSets: ParameterSets
  /// NAL units behind their lengths.
  package let data: [UInt8]
}

/// The key frames of the last segments that showed one picture only. People look at screens that do not change: the next batch
/// of theirs is then neither decoded nor encoded. A session knows only its own: what came out of one stranger's decoder is never
/// shown in another's session. For encoders of the same options.
package final class KeyFrameCache: Sendable {
  private struct State {
    var frames: [String: (key: KeyFrame, usedAt: Int)] = [:]
    var bytes = 0
    var uses = 0

    mutating func forget(_ identity: String) {
      if let gone = frames.removeValue(forKey: identity) { bytes -= Self.size(of: gone.key) }
    }

    /// Maximum overhead of an entry, beside its bytes.
    static func size(of key: KeyFrame) -> Int { key.data.count + 4_096 }
  }

  /// In bytes.
  private let capacity: Int
  private let state = Mutex(State())

  package init(capacity: Int = 8 << 20) { self.capacity = capacity }

  func recall(_ identity: String) -> KeyFrame? {
    state.withLock { state in
      state.uses += 1
      state.frames[identity]?.usedAt = state.uses
      return state.frames[identity]?.key
    }
  }

  /// The least recently used entries are evicted first.
  package func remember(_ key: KeyFrame, as identity: String) {
    state.withLock { state in
      state.forget(identity)
      state.uses += 1
      state.frames[identity] = (key, state.uses)
      state.bytes += State.size(of: key)
      while state.bytes > capacity, let oldest = state.frames.min(by: { $0.value.usedAt < $1.value.usedAt }) {
        state.forget(oldest.key)
      }
    }
  }

  package func forget(_ identity: String) { state.withLock { $0.forget(identity) } }
}
