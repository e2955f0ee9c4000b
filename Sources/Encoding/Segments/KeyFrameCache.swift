import FileSystem
import ISOMedia
import Synchronization

/// An encoded key frame.
package struct KeyFrame: Sendable {
  /// The picture as captured, in pixels.
  let width: Int
  let height: Int
  let codedWidth: Int
  let codedHeight: Int
  /// Changes to the picture that a viewer should know of.
  let notes: [String]
  var facts = PictureFacts()
  /// The parts of the picture that masks cover.
  var masks: [PictureRegion] = []
  let parameterSets: ParameterSets
  /// NAL units behind their lengths.
  let data: [UInt8]
}

/// Caches the key frames of segments that showed one picture only: a batch of an unchanged screen is neither decoded nor
/// encoded. An identity names the session, so that no session shows the output of another session's decoder. Encoders with
/// the same options may share a cache.
package final class KeyFrameCache: Sendable {
  private let keys: Mutex<LRUCache<String, KeyFrame>>

  /// - Parameter capacity: maximum size, in bytes.
  package init(capacity: Int = 8 << 20) { keys = Mutex(LRUCache(limit: capacity)) }

  func recall(_ identity: String) -> KeyFrame? { keys.withLock { $0.value(of: identity) } }

  func remember(_ key: KeyFrame, as identity: String) {
    // The key frame's bytes, its masks, and the maximum overhead of the rest.
    let cost = key.data.count + key.masks.count * MemoryLayout<PictureRegion>.stride + 4_096
    keys.withLock { $0.insert(key, for: identity, cost: cost) }
  }

  func forget(_ identity: String) { keys.withLock { $0.removeAll { $0 == identity } } }
}
