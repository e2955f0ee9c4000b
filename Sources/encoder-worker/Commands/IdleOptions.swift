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

/// Files with the map of a film; the same for every command that makes a film.
struct MapOptions: ParsableArguments {
  @Option(
    name: .customLong("map"), parsing: .singleValue,
    help: .call(
      "Write the map of film time and capture time: .json, or .vtt for a metadata track. Repeatable.",
      valueName: "file", example: "film.json"),
    completion: .file())
  var paths: [String] = []

  func validate() throws { _ = try files() }

  private func files() throws -> [MapFile] {
    try paths.map { path in
      guard let file = MapFile(path) else { throw ValidationError("--map '\(path)': name \(MapFile.rule)") }
      return file
    }
  }

  /// - Throws: wrong usage if a map cannot be that of a film.
  func validate(for form: FilmForm, named to: String) throws {
    guard !paths.isEmpty else { return }
    if case .poster = form { throw ValidationError("--map is for films: a single picture has no film time") }
    guard Set(paths + [to]).count == paths.count + 1 else {
      throw ValidationError("--map and --to name the same file twice")
    }
  }

  /// Checks that all files can be written, before the film is made.
  func check() throws { for file in try files() { try file.check() } }

  /// Writes the map of a film.
  func write(_ film: StitchedSession) throws {
    guard let map = film.namedMap else { return }
    for file in try files() { try file.write(map) }
  }
}
