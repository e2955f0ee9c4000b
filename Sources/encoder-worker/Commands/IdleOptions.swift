import ArgumentParser
import Films
import Sessions

/// The handling of idle time; the same for every command that makes a film.
struct IdleOptions: ParsableArguments {
  @Option(
    help: .call(
      "Idle time: cut[=MS] keeps MS (1000) of each still, speed=X shows the rest X times as fast. (default: kept)",
      valueName: "rule", example: "cut"))
  var idle: String?

  @Flag(help: "A pointer event ends idle time, as a change of the picture does.")
  var idleEvents = false

  func validate() throws {
    _ = try rule()
    if idleEvents, idle == nil { throw ValidationError("--idle-events is for --idle") }
  }

  var isEmpty: Bool { idle == nil }

  /// - Returns: nil to keep idle time.
  func rule() throws -> IdleRule? {
    guard let idle else { return nil }
    guard var rule = IdleRule(idle) else { throw ValidationError("--idle '\(idle)': it is \(IdleRule.rule)") }
    rule.endsAtPointerEvents = idleEvents
    return rule
  }

  /// - Throws: wrong usage if a film cannot shorten idle time.
  func validate(for form: FilmForm, at speed: FilmSpeed) throws {
    guard let idle, let rule = try rule() else { return }
    if case .poster = form { throw ValidationError("--idle is for films: a single picture has no idle time") }
    if let fault = rule.fault(at: speed) { throw ValidationError("--idle \(idle) --speed \(speed): \(fault)") }
  }
}

/// Files beside a film, with its map and its captions; the same for every command that makes a film.
struct MapOptions: ParsableArguments {
  @Option(
    name: .customLong("map"), parsing: .singleValue,
    help: .call(
      "Write the map of film time and capture time: .json, or .vtt for a metadata track. Repeatable.",
      valueName: "file", example: "film.json"),
    completion: .file())
  var paths: [String] = []

  @Option(
    help: .call(
      "Write the captions of the film as WebVTT: its steps, captions and errors. See docs/labels.md.",
      valueName: "file", example: "film.vtt"),
    completion: .file())
  var captions: String?

  var isEmpty: Bool { paths.isEmpty && captions == nil }

  func validate() throws {
    _ = try files()
    if let captions, !captions.lowercased().hasSuffix(".vtt") {
      throw ValidationError("--captions '\(captions)': name a file that ends in .vtt")
    }
  }

  private func files() throws -> [MapFile] {
    try paths.map { path in
      guard let file = MapFile(path) else { throw ValidationError("--map '\(path)': name \(MapFile.rule)") }
      return file
    }
  }

  /// - Throws: wrong usage if a map cannot be that of a film.
  func validate(for form: FilmForm, named to: String) throws {
    guard !isEmpty else { return }
    if case .poster = form {
      throw ValidationError("--map and --captions are for films: a single picture has no film time")
    }
    let all = paths + [to] + [captions].compactMap(\.self)
    guard Set(all).count == all.count else {
      throw ValidationError("--map, --captions and --to name the same file twice")
    }
  }

  /// Checks that all files can be written, before the film is made.
  func check() throws {
    for file in try files() { try file.check() }
    if let captions { _ = try Stitching.file(captions) }
  }

  /// Writes the map of a film.
  func write(_ film: StitchedSession) throws {
    guard let map = film.namedMap else { return }
    for file in try files() { try file.write(map) }
    if let captions { try Stitching.replace(captions, with: film.webVTT) }
  }
}
