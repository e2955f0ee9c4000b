import Encoding

/// The tiles of a contact sheet, in order. Pure.
struct ContactSheetPlan: Equatable {
  /// A readable or a lost segment.
  enum Piece {
    case segment(PublishedSegment)
    /// A segment with a missing or damaged manifest.
    case lost(file: String, startMs: Int64)

    var segment: PublishedSegment? { if case .segment(let segment) = self { segment } else { nil } }

    var startMs: Int64 {
      switch self {
      case .segment(let segment): segment.startMs
      case .lost(_, let startMs): startMs
      }
    }
  }

  enum Tile: Equatable {
    /// A frame, by its index in the segment.
    case picture(segment: PublishedSegment, frame: Int)
    /// All gaps between two pictures.
    case gap(startMs: Int64, lengthMs: Int64, count: Int)
    /// All lost segments between two pictures.
    case lost(file: String, startMs: Int64, count: Int)
  }

  private static let defaultPictures = 60

  let every: Int
  let tiles: [Tile]
  /// The number of captured frames.
  let captures: Int
  let gaps: [SessionIndex.Gap]
  let startMs: Int64
  let endMs: Int64

  /// - Parameters:
  ///   - pieces: at least one, in the order of their starts.
  ///   - every: shows every n-th capture; nil for some sixty captures in all.
  init(_ pieces: [Piece], every wanted: Int?) {
    let segments = pieces.compactMap(\.segment)
    captures = segments.reduce(0) { $0 + $1.frames.count { $0.isCaptured } }
    every = wanted ?? max(1, (captures + Self.defaultPictures - 1) / Self.defaultPictures)
    startMs = pieces[0].startMs
    endMs = segments.last.map { max($0.endMs + $0.gapAfterMs, pieces[pieces.count - 1].startMs) } ?? startMs
    var list = TileList(every: every)
    var before: PublishedSegment?
    for piece in pieces {
      switch piece {
      case .segment(let segment):
        // After a lost segment gaps are unknown.
        if let gap = before?.gap(before: segment) { list.add(gap) }
        list.add(segment)
        before = segment
      case .lost(let file, let startMs):
        list.add(lost: file, startMs)
        before = nil
      }
    }
    if let gap = before?.entry.closingGap { list.add(gap) }
    list.flush()
    (tiles, gaps) = (list.tiles, list.gaps)
  }
}

/// The tiles so far. Between two pictures there is at most one tile of each other kind.
private struct TileList {
  let every: Int
  private(set) var tiles: [ContactSheetPlan.Tile] = []
  private(set) var gaps: [SessionIndex.Gap] = []
  private var captures = 0
  private var gap: (startMs: Int64, lengthMs: Int64, count: Int)?
  private var lost: (file: String, startMs: Int64, count: Int)?

  init(every: Int) { self.every = every }

  mutating func add(_ segment: PublishedSegment) {
    for (index, frame) in segment.frames.enumerated() where frame.isCaptured {
      if captures % every == 0 {
        flush()
        tiles.append(.picture(segment: segment, frame: index))
      }
      captures += 1
    }
  }

  mutating func add(_ more: SessionIndex.Gap) {
    gaps.append(more)
    let (startMs, lengthMs, count) = gap ?? (more.startMs, 0, 0)
    gap = (startMs, lengthMs + more.lengthMs, count + 1)
  }

  mutating func add(lost file: String, _ startMs: Int64) {
    let first = lost ?? (file, startMs, 0)
    lost = (first.file, first.startMs, first.count + 1)
  }

  mutating func flush() {
    let gapTile = gap.map { ContactSheetPlan.Tile.gap(startMs: $0.startMs, lengthMs: $0.lengthMs, count: $0.count) }
    let lostTile = lost.map { ContactSheetPlan.Tile.lost(file: $0.file, startMs: $0.startMs, count: $0.count) }
    let isLostFirst = (lost?.startMs ?? .max) < (gap?.startMs ?? .max)
    tiles += (isLostFirst ? [lostTile, gapTile] : [gapTile, lostTile]).compactMap { $0 }
    (gap, lost) = (nil, nil)
  }
}
