// Which pictures of a session matter: those that changed most. Pure.

import Encoding
import FileSystem
import Films
import FrameBatches

/// A choice of a session's pictures.
package struct PictureChoice: Sendable, Equatable {
  /// Pixels of a picture that count as one token.
  package static let pixelsPerToken = 750

  /// Whether pictures that equal the one before are left out.
  package var changedOnly = false
  /// The percentage of the blocks that changed since the picture chosen last; nil for any change.
  package var minChange: Double?
  /// The maximum number of pictures; nil for any number.
  package var max: Int?
  /// The maximum number of tokens; nil for any number.
  package var maxTokens: Int?
  /// The maximum side of a picture, in pixels; nil to keep its size.
  package var maxSide: Int?

  package init() {}

  /// Maximum number of pictures that `serve` lists at once.
  package static let servedPictures = 1_000
  /// The maximum sides that may be asked for, in pixels.
  package static let sides = 16...8_192

  /// The percentages of a change that may be asked for.
  package static func isPercentage(_ value: Double) -> Bool { value > 0 && value <= 100 }

  /// Tells choices apart.
  package var tag: String {
    [changedOnly ? "changed" : "all", "\(minChange ?? 0)", "\(max ?? 0)", "\(maxTokens ?? 0)", "\(maxSide ?? 0)"]
      .joined(separator: "-")
  }

  /// Whether the choice depends on changes.
  var needsChanges: Bool { changedOnly || minChange != nil || max != nil || maxTokens != nil }

  /// Returns the tokens that a picture counts: one for each 750 pixels, rounded up.
  package static func tokens(of size: PixelSize) -> Int {
    (size.width * size.height + pixelsPerToken - 1) / pixelsPerToken
  }

  func tokens(of picture: CapturedPicture) -> Int { Self.tokens(of: picture.size.fitted(maxSide: maxSide)) }
}

/// A picture that a session shows.
struct CapturedPicture: Equatable {
  /// The change from the picture before.
  enum Change: Equatable {
    /// The number of blocks that differ, as the manifest tells it.
    case exact(Int)
    /// That of the decoded pictures; `isEqual` if all samples are equal.
    case estimated(Int, isEqual: Bool)
    case unknown
  }

  /// The index of its segment in a list, and that of its frame in the segment.
  let segment: Int
  let frame: Int
  /// The capture, in unix milliseconds.
  let timeMs: Int64
  /// When it is on screen, in unix milliseconds; with equal pictures behind it that are left out.
  var shownMs: Range<Int64>
  /// As captured, in pixels.
  let size: PixelSize
  /// The number of its blocks.
  let blocks: Int
  var change: Change

  var isEqual: Bool {
    switch change {
    case .exact(let count): count == 0
    case .estimated(_, let isEqual): isEqual
    case .unknown: false
    }
  }

  /// The number of blocks that changed; nil if it is unknown.
  var changedBlocks: Int? {
    switch change {
    case .exact(let count), .estimated(let count, _): count
    case .unknown: nil
    }
  }
}

extension PictureChoice {
  /// Chooses pictures, in the order of their captures. The first one is always chosen.
  ///
  /// - Throws: ``TooManyTokens`` if the first picture has more tokens than all may have.
  func chosen(of pictures: [CapturedPicture]) throws(TooManyTokens) -> [CapturedPicture] {
    var chosen: [(picture: CapturedPicture, share: Double)] = []
    // The picture that equal ones extend: the last one that differs, chosen or not.
    var extended: Int?
    // Blocks that have changed since the picture chosen last. A picture of another size has changed as a whole.
    var sum = 0
    for picture in pictures {
      if needsChanges, picture.isEqual, !chosen.isEmpty {
        if let index = extended, chosen[index].picture.shownMs.upperBound == picture.shownMs.lowerBound {
          let start = chosen[index].picture.shownMs.lowerBound
          chosen[index].picture.shownMs = start..<picture.shownMs.upperBound
        }
        continue
      }
      sum += picture.changedBlocks ?? picture.blocks
      extended = nil
      if let minChange, !chosen.isEmpty, Double(sum) * 100 < minChange * Double(picture.blocks) { continue }
      chosen.append((picture, Double(sum) / Double(picture.blocks)))
      extended = chosen.count - 1
      sum = 0
    }
    return try largest(of: chosen)
  }

  /// Returns the first picture, and of the others those with the largest changes that the limits allow.
  private func largest(of pictures: [(picture: CapturedPicture, share: Double)]) throws(TooManyTokens)
    -> [CapturedPicture]
  {
    guard max != nil || maxTokens != nil, let first = pictures.first else { return pictures.map(\.picture) }
    var (places, tokens) = ((max ?? .max) - 1, (maxTokens ?? .max) - self.tokens(of: first.picture))
    if tokens < 0 { throw TooManyTokens(tokens: self.tokens(of: first.picture), limit: maxTokens ?? 0) }
    var kept = [0]
    let others = pictures.indices.dropFirst().sorted { (pictures[$1].share, $0) < (pictures[$0].share, $1) }
    for index in others {
      places -= 1
      tokens -= self.tokens(of: pictures[index].picture)
      guard places >= 0, tokens >= 0 else { break }
      kept.append(index)
    }
    return kept.sorted().map { pictures[$0].picture }
  }
}

/// One picture has more tokens than all may have.
package struct TooManyTokens: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .usage }
  let tokens: Int
  let limit: Int

  package var description: String {
    "a picture has \(tokens) tokens, more than the limit of \(limit); raise --max-tokens, or scale pictures down with --max-side"
  }
}

extension CapturedPicture {
  /// Returns the pictures of a part of a session that are on screen at some time in it, in the order of their captures. Their manifests
  /// tell their changes.
  static func all(of part: ClippedSession) -> [CapturedPicture] {
    var pictures: [CapturedPicture] = []
    for (number, segment) in part.segments.enumerated() {
      // Of batches that overlap, segments take turns. Then the change of a segment's first picture counts from another one.
      let isNext = number == 0 || segment.isNextPart(after: part.segments[number - 1])
      let next = number + 1 < part.segments.count ? part.segments[number + 1] : nil
      // At a seam, the last picture stays until the next segment, or ends there.
      let endMs = next.map { segment.gap(before: $0) == nil ? $0.startMs : segment.endMs } ?? segment.endMs
      let starts = segment.startsOfFrames.map { segment.startMs + $0 } + [endMs]
      for (index, frame) in segment.frames.enumerated() {
        let last = index == segment.frames.count - 1
        let untilMs = last ? endMs : min(starts[index + 1], endMs)
        guard starts[index] < untilMs, starts[index] < part.range.upperBound, untilMs > part.range.lowerBound else {
          continue
        }
        let shownMs = starts[index]..<untilMs
        if !frame.isCaptured, let before = pictures.last, before.timeMs == frame.timeMs,
          before.shownMs.upperBound == shownMs.lowerBound
        {
          pictures[pictures.count - 1].shownMs = before.shownMs.lowerBound..<untilMs
          continue
        }
        let changed = frame.isCaptured && (index > 0 || isNext) ? frame.changedBlocks : nil
        pictures.append(
          CapturedPicture(
            segment: number, frame: index, timeMs: frame.timeMs, shownMs: shownMs,
            size: PixelSize(width: segment.width, height: segment.height),
            blocks: ChangedBlocks.total(width: segment.width, height: segment.height),
            change: changed.map { .exact($0) } ?? .unknown))
      }
    }
    return pictures
  }
}
