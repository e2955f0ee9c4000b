import Foundation
import TestSupport
import Testing

/// `stitch --speed` makes films of days in seconds, and says which pictures it leaves out.
@Suite struct TimelapseTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// A folder of pictures, and how it is encoded.
  enum Folder: String, CaseIterable, CustomTestStringConvertible {
    /// A picture a minute: five seconds of each are shown, and the rest is a gap.
    case gaps
    /// A picture a minute that stays.
    case stills
    /// Some three pictures a second, with a break.
    case quick

    var testDescription: String { rawValue }

    var offsets: [Int64] {
      switch self {
      case .gaps: (0..<90).map { $0 * 60_000 }
      case .stills: (0..<30).map { $0 * 60_000 + $0 % 2 * 12_345 }
      case .quick: (0..<90).map { $0 * 333 + $0 % 5 * 17 + ($0 < 60 ? 0 : 90_000) }
      }
    }

    var options: [String] { self == .stills ? ["--capture", "onChange"] : [] }
  }

  private struct Film: Decodable {
    struct Warning: Decodable { let problem: String }
    let durationMs: Int64
    let warnings: [Warning]
  }

  private func encode(_ folder: Folder) throws -> PublishedSession {
    let pictures = try NumberedFolder("yard", in: scratch)
    try pictures.add(at: folder.offsets)
    let result = try Tool.run(
      EncoderWorker.path, ["encode", pictures.path, "--output", scratch.path("out")] + folder.options)
    try #require(result.status == 0, "\(result.errors)")
    return try PublishedSession(scratch.path("out/yard"))
  }

  @Test(arguments: Folder.allCases) func fastFilmShowsEachPictureInTime(folder: Folder) throws {
    let session = try encode(folder)
    let offsets = folder.offsets
    for speed: Int64 in [101, 299, 1_440, 2_880, 20_000, 100_000] {
      let file = scratch.path("film.mp4")
      let made = try EncoderWorker.run("stitch", session.path, "--to", file, "--speed", "\(speed)", "--json")
      try #require(made.status == 0, "\(speed): \(made.errors)")
      #expect(try Conformance.faults(ofMovie: file) == [], "\(speed)")
      let film = try ShownFilm(file)
      // Exact, whatever is left out.
      let ticks = session.index.durationMs * 90 / speed
      #expect(film.durations == [ticks, ticks], "\(speed)")
      #expect(try made.json(as: Film.self).durationMs == session.index.durationMs / speed, "\(speed)")
      #expect(film.samplesLast, "\(speed)")
      let shown = film.entries.compactMap { $0.timeMs.map { $0 - NumberedFolder.startMs } }
      #expect(shown == shown.sorted() && Set(shown).isSubset(of: offsets), "\(speed)")
      // Each picture that is shown has its own time, and its own text.
      for entry in film.entries {
        guard let timeMs = entry.timeMs else { continue }
        let offset = timeMs - NumberedFolder.startMs
        #expect(abs(entry.tick - offset * 90 / speed) <= 2, "\(speed): \(entry)")
        #expect(film.number(at: entry.tick) == offsets.firstIndex(of: offset), "\(speed): \(entry)")
      }
      let leftOut = offsets.count - Set(shown).count
      let said = "\(leftOut) of \(offsets.count) pictures are left out: at speed \(speed), no screen shows them"
      #expect(made.errors.contains(said) == (leftOut > 0), "\(speed): \(leftOut) \(made.errors)")
      #expect(try made.json(as: Film.self).warnings.map(\.problem) == (leftOut > 0 ? [said] : []), "\(speed)")
      // A player can decode it.
      #expect(film.samples.count * 90_000 <= 300 * Int(ticks) + 90_000, "\(speed): \(film.samples.count)")
      // A screen of 60 pictures a second shows what a film of all pictures would show, or the picture before.
      for screen in stride(from: Int64(0), to: ticks, by: 1_500) {
        let number = try #require(film.number(at: screen))
        let wanted = offsets.lastIndex { $0 * 90 / speed <= screen } ?? 0
        let segments = Double(wanted - number) * 1_000 / 3
        #expect(number <= wanted && (folder == .quick ? segments <= 5_000 : number == wanted), "\(speed): \(screen)")
      }
    }
  }

  @Test func clipAtAHighSpeedBeginsWithThePictureOnScreen() throws {
    let session = try encode(.quick)
    let file = scratch.path("clip.mp4")
    let result = try EncoderWorker.run(
      "stitch", session.path, "--to", file, "--from", "+2.5s", "--to-time", "+17.3s", "--speed", "500")
    #expect(result.status == 0 && result.errors.contains("pictures are left out"), "\(result.errors)")
    let film = try ShownFilm(file)
    #expect(film.durations == [14_800 * 90 / 500, 14_800 * 90 / 500] && film.samplesLast)
    let first = Folder.quick.offsets.lastIndex { $0 <= 2_500 }
    #expect(film.number(at: 0) == first)
    #expect(try Conformance.faults(ofMovie: file) == [])
  }

  @Test func filmCommandSaysWhatItLeavesOut() throws {
    let pictures = try NumberedFolder("yard", in: scratch)
    try pictures.add(at: Folder.gaps.offsets)
    let result = try EncoderWorker.run(
      "film", pictures.path, "--to", scratch.path("film.mp4"), "--speed", "100000")
    #expect(result.status == 0 && result.errors.contains("of 90 pictures are left out"), "\(result.errors)")
    #expect(result.text.contains(" 54 ms, "), "\(result.text)")
  }
}
