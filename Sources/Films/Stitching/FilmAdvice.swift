// Says what options would make of a film, or did not make of it. All of it is computed from the film.

import Encoding
import Sessions

extension StitchedSession {
  /// The shortest film, in milliseconds, of which the share of stills is worth saying.
  private static let shortestMs: Int64 = 60_000
  /// The share of stills from which it is, in percent.
  private static let leastPercent: Int64 = 50
  /// The speeds that are proposed.
  private static let speeds = ["2", "5", "10", "20", "60", "100", "200", "600", "1440", "6000", "20000", "100000"]

  /// Says how much of a film is still, and how short it could be; nil if that is not worth saying.
  package var adviceOnStills: String? {
    guard let cutMs, durationMs > Self.shortestMs else { return nil }
    let percent = 100 * (durationMs - cutMs) / durationMs
    guard percent >= Self.leastPercent else { return nil }
    let share = percent == 99 ? "more than 99" : "\(percent)"
    var text =
      "\(file): nothing changes in \(share) % of \(FilmChapter.length(durationMs)): --idle cut makes "
      + "\(FilmChapter.length(cutMs)) of it"
    let speeds = Self.speeds.compactMap(FilmSpeed.init)
    if speed == .normal, let quick = speeds.first(where: { $0.film(durationMs) <= Self.shortestMs }) ?? speeds.last {
      text += ", and --speed \(quick) makes \(FilmChapter.length(quick.film(durationMs)))"
    }
    return text
  }

  /// Says that an MP4 has pictures of several sizes, which some programs take for one; nil if it has not.
  package func adviceOnSizes(_ form: FilmForm) -> String? {
    guard form == .mp4, sizes.count > 1 else { return nil }
    let (width, height) = (sizes.map(\.width).max() ?? 0, sizes.map(\.height).max() ?? 0)
    return
      "\(file): it has pictures of \(sizes.count) sizes, which players show as they are; for programs that stretch all to the "
      + "first, --canvas \(width)x\(height) makes one"
  }

  /// Says that the handling of gaps changes nothing; nil if it does, or nobody asks for it.
  package func adviceOnGaps(_ gaps: GapRule?) -> String? {
    guard let gaps, self.gaps == 0 else { return nil }
    return "\(file): --gaps \(gaps.rawValue) changes nothing: no gap is in it; for times without a change, see --idle"
  }
}
