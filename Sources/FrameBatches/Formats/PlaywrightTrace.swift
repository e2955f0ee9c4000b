import CLinux
import FileSystem
import Glibc
import JSON

/// One `*.trace` file of Playwright: lines of JSON. The first line says when the trace began. Only the lines of the screencast and of
/// actions are parsed; most others are copies of pages, and can be large.
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

  /// A line that is read.
  enum Line {
    case frame(Event)
    /// A line of the screencast with a fault.
    case fault(String)
    /// A line of ``PlaywrightSteps/types``.
    case step(type: String, members: [String: JSONValue])
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

  /// A place in the file.
  struct Place {
    fileprivate var offset = 0
    /// The number of the last line, from 1.
    fileprivate(set) var number = 0
  }

  /// Returns the next line of the screencast, of an action or of an error; nil if there is none.
  func nextLine(_ place: inout Place, lineLimit: Int) -> Line? {
    unsafe lines.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return nil }
      while place.offset < bytes.count {
        let (start, count) = (unsafe base + place.offset, bytes.count - place.offset)
        let end = unsafe memchr(start, 0x0A, count).map { unsafe UnsafeRawPointer($0) - start } ?? count
        let line = unsafe UnsafeRawBufferPointer(start: start, count: end)
        place.offset += end + 1
        place.number += 1
        if end <= lineLimit, let found = unsafe self.line(line) { return found }
      }
      return nil
    }
  }

  private func line(_ bytes: UnsafeRawBufferPointer) -> Line? {
    guard let type = unsafe Self.stepType(of: bytes) else {
      return unsafe Self.isOfScreencast(bytes) ? unsafe frame(of: bytes) : nil
    }
    return unsafe (try? JSONParser.parse(Array(bytes)))?.object.map { .step(type: type, members: $0) }
  }

  /// Whether a line contains the type's name in quotes. Quotes in the text of a page are escaped.
  private static func isOfScreencast(_ line: UnsafeRawBufferPointer) -> Bool {
    let name: StaticString = "\"screencast-frame\""
    guard let start = line.baseAddress else { return false }
    return unsafe memmem(start, line.count, name.utf8Start, name.utf8CodeUnitCount) != nil
  }

  private static let typeKey = Array(#"{"type":""#.utf8)

  /// Returns the type of a line that tells of an action or an error. Playwright writes the type first.
  private static func stepType(of line: UnsafeRawBufferPointer) -> String? {
    guard unsafe line.starts(with: typeKey) else { return nil }
    let type = unsafe String(decoding: line.dropFirst(typeKey.count).prefix(20).prefix { $0 != 0x22 }, as: UTF8.self)
    return PlaywrightSteps.types.contains(type) ? type : nil
  }

  /// Returns the hexadecimal part of a page's ID, in lower case.
  static func page(_ id: JSONValue?) -> String? {
    id?.string?.lowercased().split(separator: "@").last.map(String.init)
  }

  /// Returns an instant on the clock of the timestamps in unix milliseconds; nil for a value that is no time.
  func unixMs(_ timestamp: JSONValue?) -> Int64? {
    guard let wallTime, let monotonicTime, let timestamp = timestamp?.double else { return nil }
    return Self.milliseconds(wallTime + timestamp - monotonicTime)
  }

  /// Parses a line; nil if its type is another.
  private func frame(of line: UnsafeRawBufferPointer) -> Line? {
    let json: JSONValue
    do { json = try unsafe JSONParser.parse(Array(line)) } catch {
      return .fault("no JSON: \(error)")
    }
    guard let members = json.object, members["type"] == .string("screencast-frame") else { return nil }
    // Up to version 8, `sha1` is a name in `resources`.
    let file = members["file"]?.string
    guard let picture = file ?? members["sha1"]?.string.map({ "resources/" + $0 }) else {
      return .fault("it names no picture")
    }
    guard let page = Self.page(members["pageId"]), (1...64).contains(page.utf8.count), page.isHexadecimal else {
      return .fault("it names no page")
    }
    guard let timeMs = instant(members, picture) else { return .fault("it tells no time") }
    return .frame(Event(page: page, picture: picture, timeMs: timeMs))
  }

  /// Returns the browser's time of the frame; without one, the time when the trace received it.
  private func instant(_ members: [String: JSONValue], _ picture: String) -> Int64? {
    func known(_ key: String) -> JSONValue? { members[key].flatMap { $0 == .null ? nil : $0 } }
    if let swap = known("frameSwapWallTime") { return Self.milliseconds(swap.double) }
    if wallTime != nil, monotonicTime != nil, let timestamp = known("timestamp") { return unixMs(timestamp) }
    let name = lastComponent(of: picture)
    return name.lastIndex(of: "-").flatMap { Int64(name[$0...].dropFirst().prefix { $0 != "." }) }
  }

  /// Rounds to the millisecond; nil for a value that is no time.
  private static func milliseconds(_ value: Double?) -> Int64? {
    value.flatMap { $0.isFinite && $0.magnitude < 0x1p53 ? Int64($0.rounded()) : nil }
  }
}
