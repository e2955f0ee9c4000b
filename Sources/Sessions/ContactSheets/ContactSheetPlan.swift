import Encoding

/// The tiles of a contact sheet, in order. Pure.
struct ContactSheetPlan: Equatable {
  /// A piece of the session as it was found.
  enum Piece {
    case segment(PublishedSegment)
    /// A segment whose manifest is gone, or of no use.
    case lost(file: String, startMs: Int64)

    /// Unless it is lost.
    package var segment: PublishedSegment? { if case .segment(let segment) = self { segment } else { nil } }

    package var startMs: Int64 {
      switch self {
      case .segment(let segment): segment.startMs
      case .lost(_, let startMs): startMs
      }
    }
  }

  enum Tile: Equatable {
    /// A frame, by its place in a segment's list.
    case picture(segment: PublishedSegment, frame: Int)
    /// All gaps between two pictures.
    case gap(startMs: Int64, lengthMs: Int64, count: Int)
    /// All lost segments between two pictures.
    case lost(file: String, startMs: Int64, count: Int)
  }

  /// As many pictures make a sheet that can be looked over.
  static let usualPictures = 60

  package let every: Int
  package let tiles: [Tile]
  /// Frames of all segments, each counted once.
  package let captures: Int
  package let gaps: [SessionIndex.Gap]
  package let startMs: Int64
  package let endMs: Int64

  /// - Parameters:
  ///   - pieces: at least one, in the order of their starts.
  ///   - every: which captures are shown; nil for as many as make a usual sheet.
  init(_ pieces: [Piece], every wanted: Int?) {
    let segments = pieces.compactMap(\.segment)
    captures = segments.reduce(0) { $0 + $1.frames.count { $0.isCaptured } }
    every = wanted ?? max(1, (captures + Self.usualPictures - 1) / Self.usualPictures)
    startMs = pieces[0].startMs
    endMs = segments.last.map { max($0.endMs + $0.gapAfterMs, pieces[pieces.count - 1].startMs) } ?? startMs
    var list = TileList(every: every)
    var gaps: [SessionIndex.Gap] = []
    var before: PublishedSegment?
    for piece in pieces {
      switch piece {
      case .segment(let segment):
        // Behind a lost segment it is unknown what was a gap.
        if let gap = before?.gap(before: segment) {
          gaps.append(gap)
          list.add(gap)
        }
        list.add(segment)
        before = segment
      case .lost(let file, let startMs):
        list.add(lost: file, startMs)
        before = nil
      }
    }
    if let before, before.gapAfterMs > 0 {
      let gap = SessionIndex.Gap(startMs: before.endMs, endMs: before.endMs + before.gapAfterMs)
      gaps.append(gap)
      list.add(gap)
    }
    self.gaps = gaps
    tiles = list.finished
  }
}

/// The tiles so far. Everything between two pictures makes one tile of each kind.
private struct TileList {
  let every: Int
  private var tiles: [ContactSheetPlan.Tile] = []
  private var captures = 0
  private var gap: (startMs: Int64, lengthMs: Int64, count: Int)?
  private var lost: (file: String, startMs: Int64, count: Int)?

  init(every: Int) { self.every = every }

  var finished: [ContactSheetPlan.Tile] {
    var list = self
    list.flushTiles()
    return list.tiles
  }

  mutating func add(_ segment: PublishedSegment) {
    for (index, frame) in segment.frames.enumerated() where frame.isCaptured {
      if captures % every == 0 {
        flushTiles()
        tiles.append(.picture(segment: segment, frame: index))
      }
      captures += 1
    }
  }

  mutating func add(_ more: SessionIndex.Gap) {
    let lengthMs = more.endMs - more.startMs
    gap = gap.map { ($0.startMs, $0.lengthMs + lengthMs, $0.count + 1) } ?? (more.startMs, lengthMs, 1)
  }

  mutating func add(lost file: String, _ startMs: Int64) {
    lost = lost.map { ($0.file, $0.startMs, $0.count + 1) } ?? (file, startMs, 1)
  }

  private mutating func flushTiles() {
    let gapTile = gap.map { ContactSheetPlan.Tile.gap(startMs: $0.startMs, lengthMs: $0.lengthMs, count: $0.count) }
    let lostTile = lost.map { ContactSheetPlan.Tile.lost(file: $0.file, startMs: $0.startMs, count: $0.count) }
    let isLostFirst = (lost?.startMs ?? .max) < (gap?.startMs ?? .max)
    tiles += (isLostFirst ? [lostTile, gapTile] : [gapTile, lostTile]).compactMap { $0 }
    (gap, lost) = (nil, nil)
  }
}
