import Foundation
import TestSupport
import Testing

/// `film` shows all pictures of all its inputs, or refuses them; and it makes a film of a sensible size.
@Suite struct FilmInputTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func film(_ words: String..., to file: String = "film.mp4") throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, ["film"] + words + ["--to", scratch.path(file)], in: scratch.url)
  }

  private func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: scratch.path(name))) }

  private struct Facts: Decodable {
    struct Warning: Decodable { let file, problem: String }
    let durationMs: Int64
    let idleCutMs: Int64?
    let warnings: [Warning]
  }

  private func facts(_ words: String..., to file: String = "film.mp4") throws -> Facts {
    let result = try Tool.run(
      EncoderWorker.path, ["film"] + words + ["--json", "--to", scratch.path(file)], in: scratch.url)
    try #require(result.status == 0, "\(result.errors)")
    return try result.json(as: Facts.self)
  }

  /// Returns the numbers that the pictures of a film show, each once.
  private func shown(_ file: String = "film.mp4") throws -> [Int] {
    try Pixels.decode(scratch.path(file), width: NumberedFolder.width, height: NumberedFolder.height).map(\.number)
      .reduce(into: []) { if $0.last != $1 { $0.append($1) } }
  }

  /// Makes folders of four pictures each, whose numbering begins again in each.
  private func parts(_ names: [String]) throws {
    for (part, name) in names.enumerated() {
      try FileManager.default.createDirectory(atPath: scratch.path(name), withIntermediateDirectories: true)
      let folder = try NumberedFolder(name, in: scratch)
      for number in 0..<4 { try folder.add("frame_000\(number + 1).png", 4 * part + number) }
    }
  }

  // MARK: - Several inputs

  @Test func numberedFoldersAreOneCounter() throws {
    try parts(["job/part2", "job/part9", "job/part10"])
    let folders = ["job/part2", "job/part9", "job/part10"]
    for jobs in ["1", "3"] {
      let made = try facts(folders[0], folders[1], folders[2], "--fps", "10", "-j", jobs, to: "film-\(jobs).mp4")
      #expect(made.durationMs == 1_200 && made.warnings.isEmpty)
    }
    #expect(try shown("film-1.mp4") == Array(0..<12))
    #expect(try bytes("film-1.mp4") == bytes("film-3.mp4"))
    let around = try facts("job", "--fps", "10")
    #expect(around.warnings.count == 1 && around.warnings[0].problem.contains("3 folders"))
    #expect(try bytes("film.mp4") == bytes("film-1.mp4"))
    #expect(try facts("job/part9", "job/part2", "--fps", "10").durationMs == 800)
    #expect(try shown() == [4, 5, 6, 7, 0, 1, 2, 3])
  }

  /// The advice is run.
  @Test func foldersWithOtherNamesAreRefusedWithCommands() throws {
    try parts(["job/left", "job/right"])
    let refused = try film("job", "--fps", "10")
    #expect(refused.status == 65, "\(refused.errors)")
    let command = try #require(refused.errors.firstMatch(of: /one film of all: (encoder-worker .*)\n/)?.output.1)
    let program = URL(fileURLWithPath: EncoderWorker.path).deletingLastPathComponent().path
    let result = try Tool.run("sh", ["-c", "PATH=\"\(program):$PATH\"; \(command)"], in: scratch.url)
    #expect(result.status == 0 && result.text.contains(" 800 ms"), "\(result.errors)")
  }

  @Test func samePicturesTwiceAreShownOnce() throws {
    try NumberedFolder("a", in: scratch).add(at: [0, 1_000, 2_000])
    try NumberedFolder("b", in: scratch).add(at: [0, 1_000, 2_000])
    for inputs in [["a", "a"], ["a", "b"]] {
      let made = try facts(inputs[0], inputs[1], "-j", "2")
      #expect(made.durationMs == 3_000)
      #expect(made.warnings.map(\.problem) == ["the same pictures as in a, which are shown once"])
    }
  }

  @Test(arguments: [[0, 1_000, 2_000], [500, 1_500, 2_500], [0, 1_000, 2_000, 3_000]] as [[Int64]])
  func otherPicturesForTheSameTimeMakeNoFilm(offsets: [Int64]) throws {
    try NumberedFolder("a", in: scratch).add(at: [0, 1_000, 2_000])
    try NumberedFolder("b", in: scratch).add(at: offsets, from: 50)
    var texts: Set<String> = []
    for jobs in ["1", "2"] {
      let refused = try film("a", "b", "-j", jobs)
      #expect(refused.status == 65)
      texts.insert(refused.errors)
    }
    let text = try #require(texts.first)
    #expect(texts.count == 1 && text.contains("b: ") && text.contains("other pictures than a"), "\(texts)")
    #expect(!text.contains("verify") && !text.contains("published"))
    #expect(try !names(in: scratch.path).contains("film.mp4"))
  }

  @Test func numberedBatchesOfOneSessionFollowEachOther() throws {
    try parts(["part1", "part2"])
    let words = [
      "encode", "part1", "part2", "-o", "out", "--session", "s", "--start", "1767859512000", "--fps", "10", "-j", "2",
    ]
    for _ in 0..<2 {
      let result = try Tool.run(EncoderWorker.path, words, in: scratch.url)
      #expect(result.status == 0, "\(result.errors)")
      let session = try PublishedSession(scratch.path("out/s"))
      #expect(session.captured.map(\.timeMs) == (0..<8).map { 1_767_859_512_000 + 100 * $0 })
    }
  }

  // MARK: - A sensible film

  /// Returns the number of a film's key frames.
  private func keys(_ file: String = "film.mp4") throws -> Int {
    try Probe(scratch.path(file)).packets(of: 0).count { $0.isKey }
  }

  @Test func filmOfPicturesThatStayHasFewKeyFrames() throws {
    // Numbers differ in some blocks only.
    let folder = try NumberedFolder("stay", in: scratch)
    for number in 0..<12 { try folder.add("\(NumberedFolder.startMs + 28_000 * Int64(number)).png", 2 + number % 2) }
    let made = try facts("stay", "--capture", "onChange")
    #expect(made.durationMs == 336_000 && made.idleCutMs == 12_000)
    #expect(try keys() <= 12)
    let fives = try film("stay", "--capture", "onChange", "--segment", "5", "--key-every", "0", to: "fives.mp4")
    #expect(fives.status == 0)
    #expect(try keys("fives.mp4") > 4 * keys())
    #expect(try bytes("film.mp4").count < bytes("fives.mp4").count)
    let text = try film("stay", "--capture", "onChange").errors
    #expect(
      text.contains("nothing changes in 96 % of 336 s: --idle cut makes 12 s of it, and --speed 10 makes 33.600 s"))
    #expect(try facts("stay", "--capture", "onChange", "--idle", "cut").durationMs == 12_000)
    #expect(try facts("stay", "--capture", "onChange", "--speed", "10").durationMs == 33_600)
  }

  /// An MP4 holds a sample for 6.6 hours at most.
  @Test func filmOfDaysShowsAllPicturesAndIsSmall() throws {
    let hour: Int64 = 3_600_000
    try NumberedFolder("days", in: scratch).add(at: (0..<30).map { 16 * hour * $0 })
    for options in [["--capture", "onChange"], ["--capture", "interval", "--interval", "1000"]] {
      let made = try facts("days", options[0], options[1])
      #expect(made.durationMs >= 29 * 16 * hour)
      #expect(try shown() == Array(0..<30))
      #expect(try bytes("film.mp4").count < 300_000)
    }
    #expect(try facts("days", "--capture", "onChange", "--idle", "cut").durationMs == 30_000)
    #expect(try shown() == Array(0..<30))
  }

  /// A hold of a year has hundreds of samples, each with repeats of its own.
  @Test func filmOfYearsIsWritten() throws {
    let day: Int64 = 86_400_000
    try NumberedFolder("seasons", in: scratch).add(at: (0..<12).map { (360 * ($0 / 3) + $0 % 3) * day })
    let made = try facts("seasons", "--capture", "interval", "--interval", "1000")
    #expect(made.durationMs >= 1_082 * day)
    #expect(try shown() == Array(0..<12))
  }

  /// The film of numbered pictures counts its captures from 0.
  @Test func filmOfNumberedPicturesIsAnInput() throws {
    try parts(["job"])
    _ = try facts("job", "--fps", "10", to: "numbered.mp4")
    #expect(try facts(scratch.path("numbered.mp4"), "--speed", "2").durationMs == 200)
    #expect(try facts(scratch.path("numbered.mp4")).durationMs == 400)
    #expect(try shown() == Array(0..<4))
  }

  /// Links order the pictures of a store in the folder: the usual trick for a sequence.
  @Test func linksOrderThePicturesOfAFolderInside() throws {
    try parts(["job/store"])
    for number in 0..<4 {
      try FileManager.default.createSymbolicLink(
        atPath: scratch.path("job/\(number).png"), withDestinationPath: "store/frame_000\(4 - number).png")
    }
    #expect(try facts("job", "--fps", "10").durationMs == 400)
    #expect(try shown() == [3, 2, 1, 0])
  }

  @Test func folderOfNumberedFoldersLeadsToItsFilm() throws {
    try parts(["job/part1", "job/part2"])
    let refused = try film("job")
    #expect(refused.status == 65 && refused.errors.contains("for numbered pictures give --fps R, for example --fps 2"))
    let encoded = try Tool.run(
      EncoderWorker.path,
      ["encode", "job", "--start", "1767859512000", "--fps", "2", "--output", "out"], in: scratch.url)
    #expect(encoded.status == 65 && encoded.errors.contains("with one --session: job/*"), "\(encoded.errors)")
  }

  @Test func gapsThatAreNotThereAreSaid() throws {
    try NumberedFolder("a", in: scratch).add(at: [0, 1_000, 2_000])
    try NumberedFolder("gap", in: scratch).add(at: [0, 20_000])
    #expect(try film("a", "--gaps", "cut").errors.contains("--gaps cut changes nothing"))
    #expect(try !film("a").errors.contains("--gaps"))
    #expect(try !film("gap", "--gaps", "cut").errors.contains("--gaps"))
  }

  @Test func durationEndsThePart() throws {
    try NumberedFolder("a", in: scratch).add(at: (0..<9).map { 1_000 * $0 })
    #expect(try facts("a", "--duration", "2.5s").durationMs == 2_500)
    #expect(try facts("a", "--from", "+2s", "--duration", "3").durationMs == 3_000)
    #expect(try shown() == [2, 3, 4])
    #expect(try facts("a", "--from", "\(NumberedFolder.startMs + 1_000)", "--duration", "1s").durationMs == 1_000)
    #expect(try film("a", "--duration", "1s", "--to-time", "+2s").status == 64)
    for text in ["0s", "soon", "-1"] { #expect(try film("a", "--duration=\(text)").status == 64) }
  }

  // MARK: - The film of a run before

  @Test(arguments: ["gif", "webp", "png", "jpg"]) func filmOfARunBeforeIsNoPicture(ending: String) throws {
    let folder = try NumberedFolder("a", in: scratch)
    for number in 0..<6 {
      try folder.add("f00\(number).png", number, modifiedMs: NumberedFolder.startMs + 1_000 * Int64(number))
    }
    for options in [["--fps", "2"], ["--times", "mtime"]] {
      var made: [Data] = []
      for _ in 0..<2 {
        _ = try facts("a", options[0], options[1], to: "a/film7.\(ending)")
        made.append(try bytes("a/film7.\(ending)"))
      }
      #expect(made[0] == made[1])
      // The mark tells it in a film of another name, too.
      let other = try facts("a", options[0], options[1], to: "a/film8.mp4")
      #expect(other.durationMs == (options[0] == "--fps" ? 3_000 : 6_000))
      #expect(try shown("a/film8.mp4") == Array(0..<6))
      #expect(other.warnings.contains { $0.problem.contains("film7.\(ending) left out") })
    }
  }

  @Test func posterReplacesNoPictureOfItsFilm() throws {
    let folder = try NumberedFolder("a", in: scratch)
    for number in 0..<3 { try folder.add("f00\(number).png", number) }
    let before = try bytes("a/f001.png")
    #expect(try film("a", "--fps", "2", to: "a/f001.png").status == 64)
    #expect(try bytes("a/f001.png") == before)
  }
}
