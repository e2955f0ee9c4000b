// Labels in recordings of rrweb: custom events (type 5), Sentry's breadcrumbs and spans among them, and the lines of the console's plugin
// (type 6). Their payloads may be secret: only the name of a custom event is kept, and the first line of a message.

import JSON

enum RRWebLabels {
  /// Returns the label of an event; nil if it is none.
  static func label(type: Int64, _ data: JSONValue, atMs timeMs: Int64) -> Label? {
    switch type {
    case 5: custom(data, timeMs)
    case 6: data.text("plugin")?.hasPrefix("rrweb/console@") == true ? console(data.object?["payload"], timeMs) : nil
    default: nil
    }
  }

  private static func custom(_ data: JSONValue, _ timeMs: Int64) -> Label? {
    guard let tag = data.text("tag") else { return nil }
    let payload = data.object?["payload"]
    switch tag {
    case "breadcrumb": return payload.flatMap { breadcrumb($0, timeMs) }
    case "performanceSpan": return payload.flatMap(span)
    case "video", "options": return nil
    case "$pageview": return page(payload?.text("href"), timeMs)
    // Others of PostHog describe its own settings.
    case _ where tag.hasPrefix("$"): return nil
    default: return Label(timeMs: timeMs, kind: Label.Kind.mark, text: LabelText.firstLine(of: tag))
    }
  }

  /// A line of the console: its arguments are texts of JSON.
  private static func console(_ payload: JSONValue?, _ timeMs: Int64) -> Label? {
    let words = (payload?.object?["payload"]?.array ?? []).compactMap { argument -> String? in
      guard let text = LocatedText(argument)?.text else { return nil }
      return (try? JSONParser.parse(Array(text.utf8)))?.string ?? text
    }
    return line(words.joined(separator: " "), level: payload?.text("level"), timeMs)
  }

  private static func breadcrumb(_ payload: JSONValue, _ eventMs: Int64) -> Label? {
    let timeMs = milliseconds(payload.object?["timestamp"]) ?? eventMs
    let (category, message) = (payload.text("category") ?? "", payload.text("message"))
    switch category {
    case "console": return line(message ?? "", level: payload.text("level"), timeMs)
    case "navigation": return page(payload.object?["data"]?.text("to") ?? message, timeMs)
    default:
      guard let message, !category.hasPrefix("http"), !["fetch", "xhr"].contains(category) else { return nil }
      let isError = payload.text("level") == "error" || payload.text("level") == "fatal"
      let text = category.isEmpty ? message : "\(category) \(message)"
      return Label(
        timeMs: timeMs, kind: isError ? Label.Kind.error : Label.Kind.mark, text: LabelText.firstLine(of: text),
        level: isError ? .error : nil)
    }
  }

  /// Sentry's spans of navigation.
  private static func span(_ payload: JSONValue) -> Label? {
    guard payload.text("op")?.hasPrefix("navigation.") == true,
      let timeMs = milliseconds(payload.object?["startTimestamp"])
    else { return nil }
    return page(payload.text("description"), timeMs)
  }

  private static func page(_ address: String?, _ timeMs: Int64) -> Label? {
    address.flatMap { PageView(timeMs: timeMs, address: $0) }
      .flatMap { Label(timeMs: timeMs, kind: Label.Kind.page, text: $0.name) }
  }

  private static func line(_ text: String, level: String?, _ timeMs: Int64) -> Label? {
    let known: Label.Level
    switch level {
    case "error", "assert", "fatal": known = .error
    case "warn", "warning": known = .warning
    default: known = .info
    }
    return Label(
      timeMs: timeMs, kind: known == .error ? Label.Kind.error : Label.Kind.log, text: LabelText.firstLine(of: text),
      level: known)
  }

  /// Sentry counts seconds.
  private static func milliseconds(_ seconds: JSONValue?) -> Int64? {
    guard case .number(let text)? = seconds else { return nil }
    return UnixTime.milliseconds(ofSeconds: text)
  }
}
