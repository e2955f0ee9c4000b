// One event as one line: for a person, or as an object for a program.

import ArgumentParser
import FileSystem
import Glibc
import JSON
import Logging

enum LogFormat: String, ExpressibleByArgument, CaseIterable {
  case text, json
}

enum LogLine {
  /// `TIME LEVEL MESSAGE batch=… session=…`
  static func text(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) -> String {
    let order = ["batch": 0, "session": 1]
    let facts = metadata.sorted { (order[$0.key] ?? 2, $0.key) < (order[$1.key] ?? 2, $1.key) }
      .map { " \($0.key)=\(word("\($0.value)"))" }
    return ("\(now) \(level) \(message)" + facts.joined()).oneLine
  }

  /// `{"time":…,"level":…,"message":…,…}`
  static func json(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) -> String {
    var members: [(String, JSONValue)] = [
      ("time", .string(now)), ("level", .string("\(level)")), ("message", .string(message)),
    ]
    let facts = metadata.sorted { $0.key < $1.key }.filter { fact in !members.contains { $0.0 == fact.key } }
    members += facts.map { ($0.key, value($0.value)) }
    return "{" + members.map { "\(JSONValue.string($0).line):\($1.line)" }.joined(separator: ",").oneLine + "}"
  }

  private static func value(_ value: Logger.MetadataValue) -> JSONValue {
    switch value {
    case .stringConvertible(let number as Int): .number(String(number))
    case .array(let values): .array(values.map(Self.value))
    case .dictionary(let members): .object(members.mapValues(Self.value))
    default: .string("\(value)")
    }
  }

  /// In quotes where it would not be one word.
  private static func word(_ text: String) -> String {
    let isPlain = !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"=\\".utf8.contains($0) }
    return isPlain ? text : JSONValue.string(text).line
  }

  private static var now: String { WallClock.nowMs.dateText }
}

/// Writes each event as one line on standard error, above the bar that may be there.
struct LineLogHandler: LogHandler {
  let format: LogFormat
  var logLevel: Logger.Level
  /// The worker of the events, for programs that read the events of many.
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?

  subscript(metadataKey key: String) -> Logger.MetadataValue? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let facts = event.metadata ?? [:]
    StandardError.write(
      line: format == .json
        ? LogLine.json(event.level, "\(event.message)", metadata.merging(facts) { $1 })
        : LogLine.text(event.level, "\(event.message)", facts))
  }
}

/// Log options.
struct LogOptions: ParsableArguments {
  @Option(help: "Log format: text, or json with one object a line.")
  var logFormat = LogFormat.text

  @Option(
    help: ArgumentHelp(
      "Log level: error, warning, notice, info (each batch) or debug (each claim). (default: warning)"),
    transform: level)
  var logLevel: Logger.Level?

  @Flag(name: .shortAndLong, help: "Short for --log-level info.")
  var verbose = false

  /// Makes the logger. Call it before anything is written to standard error.
  func logger() -> Logger {
    StandardError.use(logFormat)
    let level = logLevel ?? (verbose ? .info : .warning)
    return Logger(label: "encoder-worker", factory: { _ in LineLogHandler(format: logFormat, logLevel: level) })
  }

  @Sendable private static func level(_ word: String) throws -> Logger.Level {
    let levels: [Logger.Level] = [.error, .warning, .notice, .info, .debug]
    guard let level = levels.first(where: { "\($0)" == word }) else {
      throw ValidationError("--log-level is \(levels.map { "\($0)" }.joined(separator: ", "))")
    }
    return level
  }
}
