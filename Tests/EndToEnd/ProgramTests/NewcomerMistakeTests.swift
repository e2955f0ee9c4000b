import Foundation
import TestSupport
import Testing

/// Common mistakes of new users. Each message names the file or word at fault, the cause and a next step.
@Suite struct NewcomerMistakeTests {
  struct Mistake: CustomTestStringConvertible, Sendable {
    let command: [String]
    let status: Int32
    /// Parts of the expected message: the fault, the cause, the next step.
    let message: [String]

    init(_ command: String, _ status: Int32, _ message: String...) {
      self.command = command.split(separator: " ").map(String.init)
      self.status = status
      self.message = message
    }

    var testDescription: String { command.joined(separator: " ") }
  }

  static let mistakes = [
    Mistake("", 64, "Encode batches once, without a spool.", "help COMMAND lists the options"),
    Mistake("--spoll spool", 64, "unknown option '--spoll'", "did you mean '--spool'?"),
    Mistake(
      "encod shots -o out", 64, "unknown command 'encod'", "did you mean 'encode'?", "commands: film, encode, stitch"),
    Mistake("encode shots", 64, "--output <dir>", "The directory for sessions", "encode --help"),
    Mistake("flim done/shots --to film.mp4", 64, "unknown command 'flim'", "did you mean 'film'?"),
    Mistake("stich done/shots --to film.mkv", 64, "unknown command 'stich'", "did you mean 'stitch'?"),
    Mistake("film shots --output a.gif", 64, "Unknown option '--output'", "Missing expected argument '--to <file>'"),
    Mistake("stitch done/shots --too a.gif", 64, "Unknown option '--too'", "Did you mean '--to'?"),
    Mistake("encode shots --ouptut out", 64, "Unknown option '--ouptut'", "Did you mean '--output'?"),
    Mistake("encode shots -o out --limit file-bytes=1kB", 65, "more than the limit of 1000"),
    Mistake("run --spool spool --min-free 1G", 64, "1G: it is a number of bytes", "500MB, 2GiB"),
    Mistake("encode shots -o out --quality best", 64, "'best'", "invalid for '--quality", "'balanced'"),
    Mistake("encode nothing -o out", 65, "nothing: read nothing", "no such file or directory", "check the path"),
    Mistake("encode empty -o out", 65, "empty: read empty", "nothing in it", "send frames named <unix ms>.jpg"),
    Mistake("encode numbers -o out", 65, "'shot_1.jpg'", "has a number in its name", "--start T --fps R"),
    Mistake(
      "encode shots -o out --start 1767859512340 --fps 1", 65, "1767859512340.jpg",
      "the names are capture times already",
      "leave out --start"),
    Mistake(
      "encode screens -o out", 65, "Shot 2026-01-08 at 8.05.12 PM.png", "tells local time, not its zone",
      "--time-zone Europe/Berlin"),
    Mistake(
      "encode shown -o out", 65, "'Shot_2026-01-08 at 8.05.12 PM.png'", "has a date in its name",
      "--name-time 'Shot_%Y-%m-%d at %-I.%M.%S %p'"),
    Mistake(
      "encode dates -o out", 65, "'Screenshot 2026-01-08.jpg'", "has a date in its name",
      "use the times of the files with --times mtime"),
    Mistake(
      "encode seconds -o out", 65, "1767859512.jpg", "looks like seconds", "give milliseconds: 1767859512000",
      "--name-time %s"),
    Mistake("encode bitmaps -o out", 65, "'a.ppm' is a PPM image", "convert the frames to JPEG, PNG or WebP"),
    Mistake("encode phones -o out", 65, "'IMG_1.HEIC'", "has a number in its name", "--start T --fps R"),
    Mistake("encode film.mp4 -o out", 65, "film.mp4", "an MP4 video", "encoder-worker reencode"),
    Mistake("encode video.webm -o out", 65, "the file is a WebM video", "ffmpeg -i video.webm", "video.mp4"),
    Mistake("film video.webm --to a.mp4", 65, "the file is a WebM video", "ffmpeg -i video.webm", "video.mp4"),
    Mistake("film films --to a.mp4", 65, "(2 files end in .mp4)", #""$PWD"/films/*.mp4) -c copy joined.mp4"#),
    Mistake("film films/1.mp4 films/2.mp4 --to a.mp4", 65, "films/1.mp4", "the first of 2 inputs", "joined.mp4"),
    Mistake("film links --fps 1 --to a.mp4", 65, "a symbolic link that leads out of the folder", "as links/*.jpg"),
    Mistake("enqueue --spool spool links", 65, "1.jpg: a symbolic link", "as links/*"),
    Mistake("encode it's -o out", 65, "session id", "with --session", "A–Z a–z 0–9"),
    Mistake("encode data.json -o out", 65, "no recording that is known", "batch.json", "/v1/sessions/ID/frames"),
    Mistake("encode shots.zip -o out", 65, "shots.zip", "a broken zip archive: it breaks off", "pack it again"),
    Mistake("encode shots.zip.gz -o out", 65, "shots.zip.gz", "a zip archive", "not compressed again"),
    Mistake("encode folders -o out", 65, "folders, the first in 'one'", "encode each of them with --batches folders"),
    Mistake(
      "encode shots -o done/shots", 64, "done/shots is a published session",
      "name the directory that holds the sessions"),
    Mistake("stitch done/shots --to film.mkv", 64, "'film.mkv'", "stitch writes MP4", "ends in .mp4"),
    Mistake("stitch done --to film.mp4", 65, "done: no published segment", "OUTPUT/SESSION"),
    Mistake("status --spool nowhere", 64, "nowhere: no spool", "check --spool"),
    Mistake("serve done/shots", 64, "is a published session", "name the directory that holds the sessions"),
    Mistake("run --spool /proc/spool --drain", 75, "mkdir /proc/spool", "name a directory of your own, as ~/spool"),
    Mistake(
      "enqueue --spool spool text.txt", 65, "text.txt", "no capture in unix milliseconds", "name it <unix ms>.jpg"),
    Mistake(
      "reencode film.mp4 -o out -q small", 65, "film.mp4", "invalid data", "name a directory OUTPUT/SESSION, or an MP4"),
    Mistake("reencode video.webm -o out -q small", 65, "a WebM video, not an MP4", "ffmpeg -i video.webm"),
    Mistake("reencode films -o out -q small", 65, "no session, but videos", "joined.mp4"),
  ]

  private static func place() throws -> ScratchDirectory {
    let scratch = try ScratchDirectory()
    let frame = Fixture("exact-1fps").path + "/0000.jpg"
    let jpeg = Array(try Data(contentsOf: URL(fileURLWithPath: frame)))
    for directory in [
      "shots", "screens", "empty", "numbers", "dates", "seconds", "shown", "bitmaps", "phones", "folders",
      "films", "links", "it's",
    ] {
      _ = try scratch.directory(directory)
    }
    for folder in ["one", "two"] {
      _ = try scratch.directory("folders/" + folder)
      try scratch.file("folders/\(folder)/1767859512340.jpg", jpeg)
    }
    for name in [
      "shots/1767859512340.jpg", "numbers/shot_1.jpg", "dates/Screenshot 2026-01-08.jpg", "seconds/1767859512.jpg",
      "screens/Shot 2026-01-08 at 8.05.12 PM.png", "shown/Shot_2026-01-08 at 8.05.12 PM.png",
      "it's/1767859512340.jpg",
    ] { try scratch.file(name, jpeg) }
    try scratch.file("bitmaps/a.ppm", Array("P6\n".utf8) + [UInt8](repeating: 0, count: 60))
    try scratch.file("phones/IMG_1.HEIC", [0, 0, 0, 24] + Array("ftypheic".utf8) + [UInt8](repeating: 0, count: 60))
    try scratch.file("film.mp4", [0, 0, 0, 24] + Array("ftypisom".utf8) + [UInt8](repeating: 0, count: 60))
    for number in 1...2 {
      try scratch.file("films/\(number).mp4", [0, 0, 0, 24] + Array("ftypisom".utf8))
      symlink("../numbers/shot_1.jpg", scratch.path("links/\(number).jpg"))
    }
    try scratch.file("video.webm", [0x1A, 0x45, 0xDF, 0xA3] + Array("webm".utf8))
    try scratch.file("data.json", Array(#"{"a":1}"#.utf8))
    try scratch.file("shots.zip", Array("PK".utf8) + [3, 4] + [UInt8](repeating: 0, count: 60))
    try Tool.output("gzip", ["-k", scratch.path("shots.zip")])
    try scratch.file("text.txt", Array("text".utf8))
    return scratch
  }

  @Test(arguments: mistakes) func mistakeIsReportedWithFaultCauseAndNextStep(_ mistake: Mistake) throws {
    let scratch = try Self.place()
    _ = try Tool.run(EncoderWorker.path, ["encode", "shots", "-o", "done"], in: scratch.url)
    let before = try names(in: scratch.path)
    let result = try Tool.run(EncoderWorker.path, mistake.command, in: scratch.url, verifying: false)
    #expect(result.status == mistake.status, "\(result.errors)")
    for part in mistake.message { #expect(result.errors.contains(part), "\(part): \(result.errors)") }
    // A refused command leaves no files, except the output of a refused batch.
    #expect(Set(try names(in: scratch.path)).subtracting(before).isSubset(of: ["out", "spool"]))
  }
}
