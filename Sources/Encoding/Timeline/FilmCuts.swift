// Where the segments of a film end. Nobody sees them, so a key frame stands where it is worth its bytes: where the picture changes as a
// whole, and after some change, so that players find each instant quickly. A picture that stays needs none. Pure.

/// The rule for the segments of a film that leaves none behind.
package struct FilmCuts: Sendable, Equatable {
  /// The change that a segment has, in milliseconds. A player decodes at most so much to show an instant.
  private static let changeMs: Int64 = 10_000
  /// The hold up to which a picture is a part of a motion, all of which is change, and the change of a picture that stays for longer.
  private static let (motionMs, stillChangeMs) = (Int64(2_000), Int64(250))
  /// The length from which a segment ends with the next picture, in milliseconds.
  static let fullMs: Int64 = 600_000
  /// A picture that changes as a whole gets a key frame behind one that changes in part, or one that stayed for so long; but not
  /// within a second of another key frame. In milliseconds.
  private static let (stillMs, shortestMs) = (Int64(5_000), Int64(1_000))
  /// The changed blocks of a picture that changes as a whole, in percent.
  fileprivate static let wholePercent = 75

  /// The longest piece of a hold, in milliseconds: readers count a sample in 31 bits, 6.6 hours of the film.
  package let longestMs: Int64
  /// The pace of a film that leaves out all pictures of a segment but the first if they are too many; nil if it shows all.
  private let pace: Pace?

  struct Pace: Equatable {
    /// The session's time of a picture on screen, in milliseconds.
    let pictureMs: Int64
    /// The distance of pictures at which they are not too many, in milliseconds.
    let distanceMs: Int64
    /// The length from which a segment ends with the next picture: ten seconds of a film with 60 pictures a second.
    var fullMs: Int64 { 600 * pictureMs }
  }

  /// A film at a speed that shows all pictures.
  ///
  /// - Parameter thousandths: of the normal speed.
  package init(thousandths: Int64 = 1_000) {
    longestMs = 5 * 3_600_000 * min(thousandths, 1_000) / 1_000
    pace = nil
  }

  /// A film at a speed that may leave out pictures.
  ///
  /// - Parameters:
  ///   - pictureMs: the session's time of a picture on screen, in milliseconds.
  ///   - distanceMs: the distance of pictures at which none has to be left out.
  package init(pictureMs: Int64, distanceMs: Int64) {
    longestMs = 5 * 3_600_000
    pace = Pace(pictureMs: pictureMs, distanceMs: distanceMs)
  }

  /// The pictures of the open segment.
  struct OpenSegment {
    private var pictures: Int64 = 0
    private var changeMs: Int64 = 0
    /// Whether a picture behind the first one is another.
    private var changes = false
    private var last = (changesWhole: true, holdMs: Int64(0))

    mutating func add(_ capture: Capture, holdMs: Int64) {
      let isNew = capture.changedBlocks != 0
      changes = changes || isNew && pictures > 0
      pictures += 1
      if isNew { changeMs += holdMs <= FilmCuts.motionMs ? holdMs : FilmCuts.stillChangeMs }
      last = (isNew && capture.changesWhole, holdMs)
    }

    /// Whether it ends before a picture.
    ///
    /// - Parameter lengthMs: up to the picture.
    func ends(before next: Capture, lengthMs: Int64, _ pace: Pace?) -> Bool {
      if let pace {
        if lengthMs >= pace.fullMs { return true }
        let isDense = lengthMs >= pace.pictureMs && pictures * pace.distanceMs > lengthMs
        if isDense, changes || next.changedBlocks != 0 { return true }
      } else if changeMs >= FilmCuts.changeMs || lengthMs >= FilmCuts.fullMs {
        return true
      }
      return lengthMs >= FilmCuts.shortestMs && next.changesWhole
        && (!last.changesWhole || last.holdMs >= FilmCuts.stillMs)
    }
  }

  /// Whether the open segment ends before a picture.
  ///
  /// - Parameter lengthMs: of the segment up to the picture.
  func end(_ segment: OpenSegment, before next: Capture, lengthMs: Int64) -> Bool {
    segment.ends(before: next, lengthMs: lengthMs, pace)
  }
}

extension Capture {
  /// Whether most of the picture differs from the one before it.
  fileprivate var changesWhole: Bool {
    guard let changedBlocks else { return true }
    return 100 * changedBlocks >= FilmCuts.wholePercent * ChangedBlocks.total(width: width, height: height)
  }
}
