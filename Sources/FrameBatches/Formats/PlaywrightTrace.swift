import CLinux
import FileSystem
import Glibc
import JSON

/// One `*.trace` file of Playwright: lines of JSON. The first line says when the trace began. Only the lines of the screencast are
/// parsed; most others are copies of pages, and can be large.
struct PlaywrightTrace {
  /// A frame of the screencast.
  struct Event {
    /// The hexadecimal part of the page's ID, in lower case.
    let page: String
    /// The path of the picture, relative to the trace's folder.
    let picture: String
    /// The capture, in unix milliseconds.
    let timeMs: Int64
  }

  /// The fault of a line of the screencast.
  struct BadEvent: Error {
    let reason: String
  }

  let version: Int64
  private let lines: [UInt8]
  /// The same instant in unix milliseconds, and in milliseconds on the clock of the timestamps.
  private let wallTime: Double?
  private let monotonicTime: Double?

  /// - Parameters:
  ///   - bytes: all of the file. As in an archive, it is in memory, and has at most ``Limits/frameBytes``.
  ///   - lineLimit: maximum bytes of a line that is parsed; longer lines are no frames.
  /// - Returns: nil for a file that does not begin like a trace.
  init?(_ bytes: [UInt8], lineLimit: Int) {
    let first = Array(bytes.prefix(lineLimit).prefix { $0 != 0x0A })
    guard let head = try? JSONParser.parse(first), head.object?["type"] == .string("context-options"),
      let version = head.object?["version"]?.integer
    else { return nil }
    self.version = version
    lines = bytes
    wallTime = head.object?["wallTime"]?.double
    monotonicTime = head.object?["monotonicTime"]?.double
  }

  /// Reads the lines of the screencast.
  ///
  /// - Parameter body: takes the line's number, and its frame or fault.
  func forEachEvent(
    lineLimit: Int, _ body: (_ line: Int, Result<Event, BadEvent>) throws -> Void
  ) rethrows {
    try unsafe lines.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return }
      var (start, number) = (0, 0)
      while start < bytes.count {
        number += 1
        let count = bytes.count - start
        let end = unsafe memchr(base + start, 0x0A, count).map { unsafe UnsafeRawPointer($0) - (base + start) } ?? count
        let line = unsafe UnsafeRawBufferPointer(start: base + start, count: end)
        start += end + 1
        guard end <= lineLimit, unsafe Self.isOfScreencast(line), let event = unsafe event(of: line) else { continue }
        try body(number, event)
      }
    }
  }

  /// Whether a line contains the type's name in quotes. Quotes in the text of a page are escaped.
  private static func isOfScreencast(_ line: UnsafeRawBufferPointer) -> Bool {
    let name: StaticString = "\"screencast-frame\""
    guard let start = line.baseAddress else { return false }
    return unsafe memmem(start, line.count, name.utf8Start, name.utf8CodeUnitCount) != nil
  }

  /// Parses a line; nil if its type is another.
  private func event(of line: UnsafeRawBufferPointer) -> Result<Event, BadEvent>? {
    let json: JSONValue
    do { json = try unsafe JSONParser.parse(Array(line)) } catch {
      return .failure(BadEvent(reason: "no JSON: \(error)"))
    }
    guard let members = json.object, members["type"] == .string("screencast-frame") else { return nil }
    // Up to version 8, `sha1` is a name in `resources`.
    let file = members["file"]?.string
    guard let picture = file ?? members["sha1"]?.string.map({ "resources/" + $0 }) else {
      return .failure(BadEvent(reason: "it names no picture"))
    }
    let page = members["pageId"]?.string?.lowercased().split(separator: "@").last.map(String.init)
    guard let page, (1...64).contains(page.utf8.count), page.isHexadecimal else {
      return .failure(BadEvent(reason: "it names no page"))
    }
    guard let timeMs = instant(members, picture) else { return .failure(BadEvent(reason: "it tells no time")) }
    return .success(Event(page: page, picture: picture, timeMs: timeMs))
  }

  /// Returns the browser's time of the frame; without one, the time when the trace received it.
  private func instant(_ members: [String: JSONValue], _ picture: String) -> Int64? {
    func known(_ key: String) -> JSONValue? { members[key].flatMap { $0 == .null ? nil : $0 } }
    if let swap = known("frameSwapWallTime") { return Self.milliseconds(swap.double) }
    if let wallTime, let monotonicTime, let timestamp = known("timestamp") {
      return Self.milliseconds(timestamp.double.map { wallTime + $0 - monotonicTime })
    }
    let name = lastComponent(of: picture)
    return name.lastIndex(of: "-").flatMap { Int64(name[$0...].dropFirst().prefix { $0 != "." }) }
  }

  /// Rounds to the millisecond; nil for a value that is no time.
  private static func milliseconds(_ value: Double?) -> Int64? {
    value.flatMap { $0.isFinite && $0.magnitude < 0x1p53 ? Int64($0.rounded()) : nil }
  }
}
