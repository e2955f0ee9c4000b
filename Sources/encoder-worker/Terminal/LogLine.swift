import ArgumentParser
import FileSystem
import Glibc
import JSON
import Logging

enum LogFormat: String, ExpressibleByArgument, CaseIterable {
  case text, json
}

/// An event as one line.
enum LogLine {
  /// The order of metadata: the batch comes first, texts come last.
  private static let positions = ["batch": 0, "session": 1, "message": 3, "reason": 3, "error": 3, "advice": 4]

  /// `TIME LEVEL EVENT batch=… session=… KEY=VALUE …`
  static func text(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) -> String {
    let (event, facts) = parts(message, metadata)
    return ("\(now) \(level) \(event)" + facts.map { " \($0.key)=\(word("\($0.value)"))" }.joined()).oneLine
  }

  /// `{"time":…,"level":…,"event":…,"batch":…,"session":…,KEY:VALUE,…}`
  static func json(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) -> String {
    let (event, facts) = parts(message, metadata)
    let members =
      [("time", .string(now)), ("level", .string("\(level)")), ("event", .string(event))]
      + facts.map { ($0.key, value($0.value)) }
    return "{" + members.map { "\(JSONValue.string($0).line):\($1.line)" }.joined(separator: ",").oneLine + "}"
  }

  /// The message of an event is its name, such as `batch.published`. Any other text is the `message` of the event
  /// `message`.
  private static func parts(_ message: String, _ metadata: Logger.Metadata) -> (event: String, facts: [Fact]) {
    let isName = message.contains(".") && message.utf8.allSatisfy { (97...122).contains($0) || $0 == UInt8(ascii: ".") }
    let facts = isName ? metadata : metadata.merging(["message": "\(message)"]) { $1 }
    let sorted = facts.sorted { (positions[$0.key] ?? 2, $0.key) < (positions[$1.key] ?? 2, $1.key) }
    return (isName ? message : "message", sorted)
  }

  private typealias Fact = Logger.Metadata.Element

  private static func value(_ value: Logger.MetadataValue) -> JSONValue {
    if case .stringConvertible(let number as Int) = value { .number(number) } else { .string("\(value)") }
  }

  /// Quotes a text that is more than one word.
  private static func word(_ text: String) -> String {
    let isPlain = !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"=\\".utf8.contains($0) }
    return isPlain ? text : JSONValue.string(text).line
  }

  private static var now: String { WallClock.nowMs.dateText }
}

/// Writes each event as one line to standard error.
struct LineLogHandler: LogHandler {
  let format: LogFormat
  var logLevel: Logger.Level
  /// The worker of the events, in JSON only.
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
  @Option(help: .setting("Log format: text, or json with one object a line."))
  var logFormat = LogFormat.text

  @Option(
    help: .setting(
      "Log level: error, warning, notice, info (each batch) or debug (each claim). (default: warning)"),
    transform: level)
  var logLevel: Logger.Level?

  @Flag(name: .shortAndLong, help: .setting("Short for --log-level info."))
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
