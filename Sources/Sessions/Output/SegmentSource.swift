import Encoding

/// A segment that is to be placed in a store.
struct SegmentSource {
  let segment: PublishedSegment
  let video: StagedVideo
  /// Returns the text of its manifest.
  let text: () throws -> [UInt8]

  init(_ segment: PublishedSegment, _ video: StagedVideo, text: @escaping () throws -> [UInt8]) {
    (self.segment, self.video, self.text) = (segment, video, text)
  }

  init(_ manifest: SegmentManifest) {
    self.init(manifest.segment, manifest.staged.video) { SegmentManifest.text(of: manifest.json) }
  }
}
