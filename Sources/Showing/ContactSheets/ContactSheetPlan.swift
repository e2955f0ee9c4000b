import Encoding
import Sessions

/// The tiles of a contact sheet, in order. Pure.
struct ContactSheetPlan: Equatable {
  struct Piece {
    let startMs: Int64
    /// nil if the segment is lost: its manifest is missing or damaged.
    let segment: PublishedSegment?
  }

  enum Tile: Equatable {
    /// A frame, by its index in the segment.
    case picture(segment: PublishedSegment, frame: Int)
    /// All gaps between two pictures.
    case gap(startMs: Int64, lengthMs: Int64, count: Int)
    /// All lost segments between two pictures.
    case lost(startMs: Int64, count: Int)

    var picture: (segment: PublishedSegment, frame: Int)? {
      if case .picture(let segment, let frame) = self { (segment, frame) } else { nil }
    }
  }

  private static let defaultPictures = 60

  let every: Int
  private(set) var tiles: [Tile] = []
  /// The number of captured frames.
  private(set) var captures = 0
  private(set) var gaps: [SessionIndex.Gap] = []
  let startMs: Int64
  let endMs: Int64

  /// - Parameters:
  ///   - pieces: at least one, in the order of their starts.
  ///   - every: shows every n-th capture; nil for some sixty captures in all.
  init(_ pieces: [Piece], every wanted: Int?) {
    let segments = pieces.compactMap(\.segment)
    let captures = segments.reduce(0) { $0 + $1.frames.count { $0.isCaptured } }
    every = wanted ?? max(1, (captures + Self.defaultPictures - 1) / Self.defaultPictures)
    startMs = pieces[0].startMs
    endMs = segments.last.map { max($0.endMs + $0.gapAfterMs, pieces[pieces.count - 1].startMs) } ?? startMs
    var before: PublishedSegment?
    for piece in pieces {
      if let segment = piece.segment {
        // After a lost segment gaps are unknown.
        if let gap = before?.gap(before: segment) { add(gap) }
        add(segment)
      } else {
        add(.lost(startMs: piece.startMs, count: 1))
      }
      before = piece.segment
    }
    if let gap = before?.entry.closingGap { add(gap) }
  }

  private mutating func add(_ segment: PublishedSegment) {
    for (index, frame) in segment.frames.enumerated() where frame.isCaptured {
      if captures % every == 0 { tiles.append(.picture(segment: segment, frame: index)) }
      captures += 1
    }
  }

  private mutating func add(_ gap: SessionIndex.Gap) {
    gaps.append(gap)
    add(.gap(startMs: gap.startMs, lengthMs: gap.lengthMs, count: 1))
  }

  /// Adds a gap or a lost segment to the tile of its kind since the last picture, or a new tile.
  private mutating func add(_ tile: Tile) {
    for index in tiles.indices.reversed() {
      switch (tiles[index], tile) {
      case (.gap(let startMs, let lengthMs, let count), .gap(_, let addedMs, _)):
        tiles[index] = .gap(startMs: startMs, lengthMs: lengthMs + addedMs, count: count + 1)
        return
      case (.lost(let startMs, let count), .lost):
        tiles[index] = .lost(startMs: startMs, count: count + 1)
        return
      case (.picture, _): return tiles.append(tile)
      default: continue
      }
    }
    tiles.append(tile)
  }
}
