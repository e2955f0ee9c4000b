// A segment in a pack as a playlist lists it: a range of bytes, and the initialization at the beginning of a pack of its kind. Nothing is
// copied. Pictures that stay behind its end get a fragment of their own, on the timeline of packs. Pure.

import Encoding
import ISOMedia

package struct HLSPackPart {
  let place: PackPlace
  /// The size of the initialization at the beginning of the pack, in bytes.
  let initializationBytes: Int
  /// nil if the fragment is damaged.
  let layout: HLSLayout?
  /// Whether the playlist lists a copy of the segment on the timeline of packs, because the pack cannot follow those before it.
  var isCopied = false

  /// The longest time between two packs for which the picture needs no fragment of its own, in milliseconds: players keep the picture. It
  /// is the longest seam of a recorder with a picture a second.
  static let maximumHoleMs: Int64 = 500

  /// The beginning of the name of a pack, seen from the playlist.
  static let prefix = "../pack-"

  /// Whether a line of a playlist names a pack.
  static func isNamed(in line: ArraySlice<UInt8>) -> Bool { line.starts(with: prefix.utf8) }

  /// Returns the name of the initialization of packs. It changes with the kind of picture, and where the clock of packs begins anew.
  static func initialization(kind: some StringProtocol, _ startMs: Int64) -> String {
    "\(kind) \(startMs - PackPlace.clockMs(startMs))"
  }

  /// Returns how much of the time until the next segment belongs to the entry, in milliseconds. Behind a discontinuity players count from
  /// the end of the fragment.
  private func holeMs(before next: HLSPackPart?) -> Int64 {
    next.map { $0.place.kind == place.kind && $0.originMs == originMs && $0.isCopied == isCopied } ?? false
      ? Self.maximumHoleMs : 0
  }

  /// Whether a picture stays on screen until the next segment for so long that it needs a fragment of its own.
  ///
  /// - Parameter part: of the next segment; nil if that is in no pack.
  func isHeld(_ segment: PublishedSegment, until next: PublishedSegment, _ part: HLSPackPart?) -> Bool {
    next.startMs - segment.endMs > holeMs(before: part) && segment.gap(before: next) == nil
  }

  /// Returns a segment as the pack has it, and its entry. Only a short time until the next one belongs to the entry.
  func entry(of part: HLSSegment, before next: HLSPackPart?) -> (HLSSegment, HLSPlaylist.Entry) {
    let segment = part.segment
    let part = part.lengthMs > segment.durationMs + holeMs(before: next) ? part.withOwnEnd : part
    var entry = HLSPlaylist.Entry(
      file: "../" + place.file, initialization: Self.initialization(kind: place.kind, place.startMs),
      startMs: segment.startMs, endMs: segment.startMs + part.lengthMs, layout: layout)
    (entry.map, entry.range, entry.packKind) = (map, place.fragment, place.kind)
    entry.mediaMs = part.startMs
    return (part, entry)
  }

  /// Returns a fragment that holds the last picture of a segment in the pack, and its entry.
  ///
  /// - Parameter range: in unix milliseconds.
  func hold(_ segment: PublishedSegment, in range: Range<Int64>) -> (HLSSegment, HLSPlaylist.Entry) {
    var part = HLSSegment(holding: segment, in: range, sessionStartMs: originMs)
    part.carriesParameterSets = PackPlace.isInBand(place.kind)
    var entry = HLSPlaylist.Entry(part, initialization: Self.initialization(kind: place.kind, place.startMs))
    entry.map = map
    return (part, entry)
  }

  /// The instant that times in the pack count from, in unix milliseconds.
  var originMs: Int64 { place.startMs - place.clockMs }

  /// The value of `EXT-X-MAP:URI`.
  private var map: String { "\"../\(place.file)\",BYTERANGE=\"\(initializationBytes)@0\"" }
}

extension HLSLayout {
  /// - Parameter range: of the fragment in its pack.
  init(of fragment: MP4PackFragment, at range: Range<Int>) {
    let source = fragment.source
    self.init(
      bytes: range.count, keyFrame: range.lowerBound..<range.lowerBound + fragment.keyFrameBytes(of: range.count),
      width: source.width, height: source.height, codec: source.codec)
  }
}
