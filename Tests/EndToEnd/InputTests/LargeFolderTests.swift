import Foundation
import TestSupport
import Testing

/// A folder of more pictures than a batch takes becomes several batches, which make the film of one.
@Suite struct LargeFolderTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private struct Line: Decodable {
    let batch: String, session: String
    let frames: Int
    let duplicate: Bool
  }

  private func encode(_ words: [String], to output: String, limit: Int? = nil) throws -> Tool.Result {
    try Tool.run(
      EncoderWorker.path,
      ["encode"] + words + ["--output", output] + (limit.map { ["--limit", "frames=\($0)"] } ?? []), in: scratch.url)
  }

  private func session(_ output: String, _ name: String = "yard") throws -> PublishedSession {
    try PublishedSession(scratch.path("\(output)/\(name)"))
  }

  private func film(of session: PublishedSession, _ options: String...) throws -> ShownFilm {
    let file = scratch.path("film.mp4")
    let result = try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", file] + options)
    try #require(result.status == 0 && result.errors == "", "\(result.errors)")
    return try ShownFilm(file)
  }

  /// How the pictures of a folder tell their times.
  enum Times: String, CaseIterable, CustomTestStringConvertible {
    case names, gaps, onChange, numbers, modified, monitors

    var testDescription: String { rawValue }

    /// Milliseconds from the start.
    var offsets: [Int64] {
      switch self {
      case .names, .monitors: (0..<31).map { $0 * 1_000 + $0 % 3 * 40 }
      case .gaps: (0..<31).map { $0 * 1_000 + $0 / 4 * 9_000 }
      case .onChange, .modified:
        (0..<31).map { number -> Int64 in [0, 300, 2_000, 14_345][number % 4] + Int64(number / 4) * 18_345 }
      case .numbers: (0..<31).map { $0 * 250 }
      }
    }

    var options: [String] {
      switch self {
      case .names, .gaps, .monitors: []
      case .onChange: ["--capture", "onChange"]
      case .modified: ["--times", "mtime"]
      case .numbers: ["--start", "\(NumberedFolder.startMs)", "--fps", "4"]
      }
    }

    func add(to folder: NumberedFolder, _ range: Range<Int>) throws {
      for number in range {
        let timeMs = NumberedFolder.startMs + offsets[number]
        switch self {
        case .names, .gaps, .onChange: try folder.add("\(timeMs).png", number)
        case .numbers: try folder.add(String(format: "shot_%04d.png", number), number)
        case .modified: try folder.add("shot \(number).png", number, modifiedMs: timeMs)
        case .monitors:
          try folder.add("\(timeMs)_m1.png", number)
          if number % 2 == 0 { try folder.add("\(timeMs)_m2.png", number) }
        }
      }
    }

    var sessions: [String] { self == .monitors ? ["yard.m1", "yard.m2"] : ["yard"] }
  }

  @Test(arguments: Times.allCases) func partsMakeTheFilmOfTheWhole(times: Times) throws {
    let folder = try NumberedFolder("yard", in: scratch)
    try times.add(to: folder, 0..<31)
    try #require(try encode([folder.path] + times.options, to: "whole").status == 0)
    let result = try encode([folder.path] + times.options, to: "parts", limit: 7)
    #expect(result.status == 0, "\(result.errors)")
    let parts = times == .monitors ? 8 : 5
    #expect(
      result.errors.contains(
        "yard: \(times == .monitors ? 47 : 31) pictures in \(parts) batches: \(parts) published"), "\(result.errors)")
    for name in times.sessions {
      let (whole, split) = (try session("whole", name), try session("parts", name))
      #expect(Set(whole.manifests.map(\.batch)).count == 1)
      #expect(Set(split.manifests.map(\.batch)).count == (name == "yard.m2" ? 3 : 5))
      #expect(split.captured.map(\.source) == whole.captured.map(\.source))
      #expect(split.captured.map(\.timeMs) == whole.captured.map(\.timeMs))
      #expect(Set(split.manifests.map(\.intervalMs)) == Set(whole.manifests.map(\.intervalMs)))
      #expect(split.index.gaps == whole.index.gaps)
      #expect(split.index.durationMs == whole.index.durationMs && split.index.startMs == whole.index.startMs)
      let (one, other) = (try film(of: whole), try film(of: split))
      #expect(one.entries == other.entries && one.durations == other.durations)
      for entry in other.entries {
        #expect(one.number(at: entry.tick) == other.number(at: entry.tick), "\(entry)")
        guard let timeMs = entry.timeMs else { continue }
        let number = times.offsets.firstIndex(of: timeMs - NumberedFolder.startMs)
        #expect(other.number(at: entry.tick) == number, "\(entry)")
      }
    }
  }

  @Test func sameFolderIsTheSameBatches() throws {
    let folder = try NumberedFolder("yard", in: scratch)
    try folder.add(at: (0..<40).map { $0 * 60_000 })
    let first = try encode([folder.path, "--json", "--final"], to: "out", limit: 9)
    #expect(first.status == 0, "\(first.errors)")
    let starts = stride(from: 0, to: 40, by: 9).map { "yard@\(NumberedFolder.startMs + Int64($0) * 60_000)" }
    let lines = try first.jsonLines(as: Line.self)
    #expect(lines.map(\.batch).sorted() == starts && lines.allSatisfy { $0.session == "yard" && !$0.duplicate })
    #expect(lines.reduce(0) { $0 + $1.frames } == 40)
    #expect(first.errors.contains("40 pictures in 5 batches: 5 published\n"), "\(first.errors)")
    let published = try session("out")
    #expect(published.index.complete && published.manifests.count(where: \.final) == 1)
    let before = try snapshot(of: published.path)
    // Named one by one, and in a list, they are the same.
    let files = try names(in: folder.path).map { folder.path + "/" + $0 }
    let list = try scratch.file("list", Array(files.joined(separator: "\n").utf8))
    for words in [[folder.path], files.reversed(), ["--files-from", list]] {
      let again = try encode(words + ["--json", "--final"], to: "out", limit: 9)
      #expect(again.status == 0, "\(again.errors)")
      #expect(try again.jsonLines(as: Line.self).allSatisfy(\.duplicate))
      #expect(again.errors.contains("40 pictures in 5 batches: 5 published before\n"), "\(again.errors)")
    }
    #expect(try snapshot(of: published.path) == before)
    // With a higher limit they are published already, too.
    let higher = try encode([folder.path, "--json", "--final"], to: "out")
    #expect(try higher.status == 0 && higher.jsonLines(as: Line.self).map(\.duplicate) == [true], "\(higher.errors)")
    #expect(try snapshot(of: published.path) == before)
  }

  @Test func partsKeepTheLimitOfSegments() throws {
    let folder = try NumberedFolder("yard", in: scratch)
    // A still of 40 s is eight segments, and the last one does not count.
    try folder.add(at: (0..<9).map { $0 * 40_000 })
    let options = ["--capture", "onChange", "--limit", "segments=20"]
    let result = try encode([folder.path] + options, to: "out")
    #expect(result.status == 0 && result.errors.contains("9 pictures in 3 batches"), "\(result.errors)")
    let session = try session("out")
    #expect(session.captured.count == 9 && session.index.gaps == [] && session.index.durationMs == 360_000)
  }

  @Test func killedRunIsRepeatedWithTheSameSession() throws {
    let folder = try NumberedFolder("yard", in: scratch)
    try folder.add(at: (0..<60).map { $0 * 1_000 })
    try #require(try encode([folder.path], to: "alone", limit: 6).status == 0)
    for published in [1, 3, 5, 8] {
      let worker = try RunningWorker(
        ["encode", folder.path, "--output", scratch.path("out"), "--limit", "frames=6", "--jobs", "2"])
      while try manifests(in: "out") < published, worker.isRunning { usleep(500) }
      worker.signal(SIGKILL)
      _ = try worker.wait()
    }
    let result = try encode([folder.path], to: "out", limit: 6)
    #expect(result.status == 0, "\(result.errors)")
    let alone = try snapshot(of: scratch.path("alone/yard")).mapValues(\.bytes)
    #expect(try snapshot(of: scratch.path("out/yard")).mapValues(\.bytes) == alone)
  }

  private func manifests(in output: String) throws -> Int {
    (FileManager.default.subpaths(atPath: scratch.path(output)) ?? []).count {
      $0.contains("segment-") && $0.hasSuffix(".json")
    }
  }

  @Test func filmOfALargeFolderIsThatOfEncodeAndStitch() throws {
    let folder = try NumberedFolder("yard", in: scratch)
    try folder.add(at: (0..<33).map { $0 * 700 })
    try #require(try encode([folder.path], to: "out", limit: 8).status == 0)
    _ = try film(of: session("out"))
    let made = try Tool.run(
      EncoderWorker.path,
      ["film", folder.path, "--to", scratch.path("made.mp4"), "--limit", "frames=8", "--segment", "5"])
    #expect(made.status == 0 && made.errors.contains("33 pictures in 5 batches: 5 published"), "\(made.errors)")
    let films = try ["film.mp4", "made.mp4"].map { try Data(contentsOf: URL(fileURLWithPath: scratch.path($0))) }
    #expect(films[0] == films[1])
  }

  /// An archive is in memory as a whole, and a batch.json describes one batch.
  @Test func otherBatchesAreRefusedWithTheLimitThatTheyNeed() throws {
    let folder = try NumberedFolder("yard", in: scratch)
    try folder.add(at: (0..<5).map { $0 * 1_000 })
    try Tool.output("tar", ["-cf", scratch.path("yard.tar"), "-C", folder.path, "."])
    let described = try NumberedFolder("described", in: scratch)
    try described.add(at: (0..<5).map { $0 * 1_000 })
    try scratch.file("described/batch.json", Array(#"{"version":1,"session":"described"}"#.utf8))
    for batch in ["yard.tar", "described"] {
      let refused = try encode([batch], to: "out", limit: 4)
      #expect(refused.status == 65, "\(refused.errors)")
      #expect(refused.errors.contains("5 frames, more than the limit of 4"), "\(refused.errors)")
      #expect(refused.errors.contains("raise the limit with --limit frames=5, or split the batch"), "\(refused.errors)")
      #expect(try encode([batch], to: "out", limit: 5).status == 0)
    }
  }

  @Test func inspectShowsTheBatches() throws {
    let folder = try NumberedFolder("yard", in: scratch)
    try folder.add(at: (0..<5).map { $0 * 1_000 })
    let result = try Tool.run(
      EncoderWorker.path, ["encode", "--dry-run", folder.path, "--json", "--limit", "frames=3"])
    struct Shown: Decodable { let batch: String, startMs: Int64, endMs: Int64 }
    let shown = try result.jsonLines(as: Shown.self)
    #expect(shown.map(\.batch) == ["yard@\(NumberedFolder.startMs)", "yard@\(NumberedFolder.startMs + 3_000)"])
    #expect(shown.map(\.endMs) == [NumberedFolder.startMs + 3_000, NumberedFolder.startMs + 5_000])
  }

  /// A camera that takes a picture a minute, for days: more than the default limit of a batch.
  @Test func folderOfDaysIsEncodedByDefault() throws {
    let count = Extent.of(3_700, full: 4_000)
    let folder = try NumberedFolder("yard", in: scratch)
    try folder.add(at: (0..<count).map { Int64($0) * 60_000 })
    let result = try encode([folder.path], to: "out")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.errors.contains("\(count) pictures in 2 batches: 2 published"), "\(result.errors)")
    let session = try session("out")
    #expect(session.captured.count == count && session.index.durationMs == Int64(count) * 60_000)
    #expect(session.manifests.count == count && session.index.gaps.count == count)
  }
}
