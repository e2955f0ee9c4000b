/// A frame to be encoded. Its pixels are decoded on demand, and it is encoded as a key frame once.
package final class SourceFrame {
  /// The picture as captured, in pixels.
  package let width: Int
  package let height: Int
  /// Changes to the picture that a viewer should know of.
  let notes: [String]
  let facts: PictureFacts
  /// The parts of the picture that masks cover.
  let masks: [PictureRegion]
  /// Identifies the source: equal for equal pictures; nil if unknown.
  package let identity: String?
  /// The key frame of a segment that shows only this frame; nil until one is encoded.
  package internal(set) var key: KeyFrame?
  private(set) var isDecoded: Bool
  /// Whether its pixels are known to differ from those of the frame before it in its batch.
  var differsFromPrevious = false
  /// Decodes the files, or returns the decoded picture.
  private var load: () throws -> Picture

  package init(
    _ picture: Picture, notes: [String] = [], facts: PictureFacts = PictureFacts(), masks: [PictureRegion] = [],
    identity: String? = nil
  ) {
    self.facts = facts
    (width, height) = (picture.width, picture.height)
    self.notes = notes
    self.masks = masks
    self.identity = identity
    isDecoded = true
    load = { picture }
  }

  /// A frame whose key frame is known.
  init(_ key: KeyFrame, identity: String, decode: @escaping () throws -> Picture) {
    (width, height) = (key.width, key.height)
    notes = key.notes
    facts = key.facts
    masks = key.masks
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

  /// Returns the number of its blocks that differ from those of another frame; nil if that has another size.
  func changedBlocks(since other: SourceFrame) throws -> Int? {
    guard (width, height) == (other.width, other.height) else { return nil }
    return try ChangedBlocks.count(in: picture(), since: other.picture())
  }

  /// Whether it shows the same pixels.
  package func looksLike(_ other: SourceFrame) throws -> Bool {
    if self === other || identity != nil && identity == other.identity { return true }
    guard (width, height) == (other.width, other.height) else { return false }
    return try picture().looksLike(other.picture())
  }
}
