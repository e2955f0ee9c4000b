import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches

/// Thousands of generated folders: each picture is shown at the time that the generator gave it, or named as refused. The advice for
/// a folder that is refused is followed to the letter.
@Suite struct FolderPropertyTests {
  /// Names without a disk. Each file is a JPEG.
  private struct Names: BatchContents {
    let names: [String]
    var isLoose: Bool { true }
    var refused: [RefusedFrame] { [] }

    func contents(of name: String, limit: Int) throws -> FileContents? {
      names.contains(name) ? .bytes([0xFF, 0xD8, 0xFF, 0xE0]) : nil
    }

    func start(of name: String, count: Int) throws -> [UInt8]? { [0xFF, 0xD8, 0xFF, 0xE0] }
  }

  /// A folder, and the offset of each picture from the first one, in milliseconds; nil for a file that is none of the recording.
  private struct Folder {
    var offsets: [String: Int64?] = [:]
    var isNumbered = false
    var description = ""

    /// Adds a picture.
    ///
    /// - Returns: whether its name is new.
    mutating func add(_ name: String, _ offsetMs: Int64?) { offsets.updateValue(offsetMs, forKey: name) }
  }

  private static let startMs: Int64 = 1_767_859_512_000

  /// Reads a folder as the program does.
  private func read(_ folder: Folder, _ options: InputOptions) throws -> BatchSessions {
    let source = BatchSource(
      name: "batch", contents: Names(names: folder.offsets.keys.sorted()), session: "s", options: options)
    for format in FormatList.all {
      if let found = try BatchSessions(source, as: format, name: "batch", limits: Limits()) { return found }
    }
    throw UnknownBatch.explain(source, name: "batch", limits: Limits())
  }

  /// Reads a folder. After a refusal, does what the advice says.
  private func readAsAdvised(_ folder: Folder) throws -> (sessions: BatchSessions?, refusal: BadBatch?) {
    func options(_ nameTime: String?, isNumbered: Bool) throws -> InputOptions {
      var options = InputOptions(session: "s")
      try options.setTimes(
        nameTime: nameTime, times: nil, start: isNumbered ? "\(Self.startMs)" : nil, fps: isNumbered ? "1" : nil,
        timeZone: "UTC")
      return options
    }
    do {
      return (try read(folder, options(nil, isNumbered: folder.isNumbered)), nil)
    } catch let bad as BadBatch {
      let pattern = Self.pattern(in: bad.advice)
      guard pattern != nil || bad.advice.contains("--fps") else { return (nil, bad) }
      let isNumbered = folder.isNumbered || bad.advice.contains("--fps")
      do {
        return (try read(folder, options(pattern, isNumbered: isNumbered)), bad)
      } catch let second as BadBatch {
        Issue.record("\(folder.description): the advice '\(bad.advice)' is refused: \(second); \(second.advice)")
        return (nil, second)
      }
    }
  }

  /// Returns the first pattern in an advice, without the quotes of a shell.
  private static func pattern(in advice: String) -> String? {
    guard let start = advice.firstRange(of: "--name-time '")?.upperBound else { return nil }
    // A quote in the pattern ends the word of the shell, and begins it again behind itself.
    let text = String(advice[start...]).replacing("'\\''", with: "\u{0}")
    return text.split(separator: "'", maxSplits: 1).first.map { String($0).replacing("\u{0}", with: "'") }
  }

  /// - Returns: whether the folder was read.
  private func check(_ folder: Folder) throws -> Bool {
    let (sessions, refusal) = try readAsAdvised(folder)
    guard let sessions else { return false }
    let about = "\(folder.description) \(folder.offsets.keys.sorted().prefix(6)), advice \(refusal?.advice ?? "none")"
    var shown: [String: Int64] = [:]
    var refused: Set<String> = []
    for batch in sessions.readers.map(\.batch) {
      var instants: Set<Int64> = []
      for frame in batch.frames {
        // Of several files at one instant, the first one is shown, and the manifest lists the others.
        if instants.insert(frame.timeMs).inserted {
          shown[frame.source] = frame.timeMs
        } else {
          refused.insert(frame.source)
        }
      }
      refused.formUnion(batch.refused.map { lastComponent(of: $0.source) })
    }
    let pictures = folder.offsets.compactMapValues { $0 }
    let zeroMs = folder.isNumbered ? shown.filter { pictures[$0.key] != nil }.values.min() ?? 0 : Self.startMs
    let lowest = folder.isNumbered ? pictures.filter { shown[$0.key] != nil }.values.min() ?? 0 : 0
    for (name, offset) in pictures {
      guard let timeMs = shown[name] else {
        #expect(refused.contains(name), "\(name) is lost in silence: \(about)")
        continue
      }
      #expect(timeMs - zeroMs == offset - lowest, "\(name) is shown at a wrong time: \(about)")
    }
    #expect(2 * pictures.keys.count { shown[$0] != nil } >= pictures.count, "most pictures are refused: \(about)")
    return true
  }

  @Test func pictureIsShownAtItsTimeOrNamedAsRefused() throws {
    var random = Random(seed: 62)
    let count = Extent.of(3_000, full: 30_000)
    var read = 0
    for _ in 0..<count {
      if try check(Self.folder(&random)) { read += 1 }
    }
    #expect(10 * read >= 9 * count, "\(read) of \(count) folders are read")
  }

  // MARK: - The generator

  private static func pick<T>(_ values: [T], _ random: inout Random) -> T {
    values[Int.random(in: values.indices, using: &random)]
  }

  private static func padded(_ number: Int64, _ width: Int) -> String {
    let digits = "\(number)"
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  private static let prefixes = ["", "cam_", "Shot ", "x-", "IMG_", "frame 7 ", "a1_", "100% ", "[x] ", "l'été "]
  private static let suffixes = ["", "_1920x1080", "@2x", "_v2", " copy", "_z000", "-a"]
  private static let strays = [
    "cover.png", "notes 2019.png", "1.0.png", "logo@2x.png", "preview_cam-1.webp", "readme.txt", ".png",
  ]

  private static func folder(_ random: inout Random) -> Folder {
    var folder = Bool.random(using: &random) ? timed(&random) : numbered(&random)
    let most = (folder.offsets.count - 1) / 3
    for _ in 0..<Int.random(in: 0...max(0, min(2, most)), using: &random) { folder.add(pick(strays, &random), nil) }
    return folder
  }

  /// Pictures with a counter, some of which are missing.
  private static func numbered(_ random: inout Random) -> Folder {
    var folder = Folder(isNumbered: true)
    let (prefix, suffix) = (pick(prefixes, &random), pick(suffixes, &random))
    let first = Int64.random(in: 0...2_000, using: &random)
    let step = Int64(pick([1, 1, 1, 2, 5, 100, 500], &random))
    let width = pick([0, 4, 6], &random)
    var place: Int64 = 0
    for _ in 0..<Int.random(in: 3...24, using: &random) {
      folder.add("\(prefix)\(padded(first + place * step, width))\(suffix).png", 1_000 * place)
      place += Int.random(in: 0..<10, using: &random) == 0 ? 2 : 1
    }
    folder.description = "numbered by \(step)"
    return folder
  }

  /// Pictures with times in their names.
  private static func timed(_ random: inout Random) -> Folder {
    var folder = Folder()
    let (prefix, suffix) = (pick(prefixes, &random), pick(suffixes, &random))
    let form = pick(
      [
        "ms", "s.ms", "s.us", "s_ns", "date", "date.ms", "date-ms", "date_n", "date (n)", "dates ms", "iso", "month",
        "ticks",
      ], &random)
    folder.description = form
    var offsetMs: Int64 = 0
    var seconds: [Int64: [String]] = [:]
    for _ in 0..<Int.random(in: 4...24, using: &random) {
      let instant = startMs + offsetMs
      let (second, ms) = (instant / 1_000, instant % 1_000)
      let day = CivilText(second: second)
      let time: String
      switch form {
      case "ms": time = "\(instant)"
      case "s.ms": time = "\(second).\(padded(ms, 3))"
      case "s.us": time = "\(second).\(padded(ms, 3))000"
      case "s_ns": time = "\(second)_\(padded(ms, 3))000000"
      case "date.ms": time = "\(day.date)_\(day.time).\(padded(ms, 3))"
      case "date-ms": time = "\(day.dashed)-\(padded(ms, 3))"
      case "dates ms": time = "\(day.date)\(day.time)\(padded(ms, 3))"
      case "iso": time = "\(day.dashed)Z"
      case "month": time = "\(day.dashed.dropFirst(8).prefix(2))-Jan-2026\(day.dashed.dropFirst(10))"
      case "ticks": time = "\(instant * 10_000 + 621_355_968_000_000_000)"
      case "date_n", "date (n)":
        let number = Int64(seconds[second]?.count ?? 0)
        time =
          form == "date_n" ? "\(day.date)_\(day.time)_\(number)" : "\(day.dashed)" + (number > 0 ? " (\(number))" : "")
      default: time = "\(day.date)-\(day.time)"
      }
      let name = "\(prefix)\(time)\(suffix).png"
      let isWhole = ["date", "iso", "month"].contains(form)
      folder.add(name, isWhole ? second * 1_000 - startMs : offsetMs)
      seconds[second, default: []].append(name)
      offsetMs +=
        isWhole ? 1_000 * Int64.random(in: 1...9, using: &random) : Int64.random(in: 120...4_000, using: &random)
    }
    if form == "date_n" || form == "date (n)" {
      for (second, names) in seconds {
        for (place, name) in names.enumerated() {
          folder.add(name, second * 1_000 - startMs + Int64(place * 1_000 / names.count))
        }
      }
    }
    return folder
  }
}

/// The date and time of day of an instant on 2026-01-08 or the day behind it, in UTC.
private struct CivilText {
  let date: String
  let time: String
  let dashed: String

  init(second: Int64) {
    func two(_ number: Int64) -> String { (number < 10 ? "0" : "") + "\(number)" }
    let inDay = second - 1_767_830_400
    let day = 8 + inDay / 86_400
    let (hour, minute, seconds) = (inDay % 86_400 / 3_600, inDay % 3_600 / 60, inDay % 60)
    date = "202601" + two(day)
    time = two(hour) + two(minute) + two(seconds)
    dashed = "2026-01-" + two(day) + "_" + two(hour) + "-" + two(minute) + "-" + two(seconds)
  }
}
