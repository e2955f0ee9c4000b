// Requests and responses of HTTP (RFC 9110), as values.

import FileSystem
import JSON
import SegmentEncoder
import Sessions

struct HTTPRequest {
  let method: String
  /// Percent signs resolved; begins with a slash.
  let path: String
  let header: (_ name: String) -> String?

  /// Whether the client has this version, and only asks whether it is current.
  func has(_ tag: String) -> Bool {
    (header("If-None-Match") ?? "").split(separator: ",").contains { item in
      let item = item.drop { $0 == " " }
      let trimmed = item.prefix { $0 != " " }
      return trimmed == "*" || (trimmed.hasPrefix("W/") ? trimmed.dropFirst(2) : trimmed) == "\"\(tag)\""
    }
  }

  var parts: [String] { path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init) }
}

struct HTTPResponse {
  enum Body {
    case bytes([UInt8])
    case file(OpenFile, Range<Int>)

    var count: Int {
      switch self {
      case .bytes(let bytes): bytes.count
      case .file(_, let range): range.count
      }
    }
  }

  enum Kind: String {
    case html = "text/html; charset=utf-8"
    case css = "text/css; charset=utf-8"
    case script = "text/javascript; charset=utf-8"
    case svg = "image/svg+xml"
    case jpeg = "image/jpeg"
    case json = "application/json"
    case text = "text/plain; charset=utf-8"
    case metrics = "text/plain; version=0.0.4; charset=utf-8"
    case mp4 = "video/mp4"
    case fragment = "video/iso.segment"
    case playlist = "application/vnd.apple.mpegurl"
  }

  var status: Int
  var kind: Kind
  var headers: [(name: String, value: String)] = []
  var body: Body
  /// Another text when the body is another; what has none cannot be asked for in parts.
  var tag: String?

  init(_ kind: Kind, _ bytes: [UInt8], status: Int = 200, tag: String? = nil) {
    self.status = status
    self.kind = kind
    body = .bytes(bytes)
    self.tag = tag
  }

  init(_ kind: Kind, _ file: OpenFile) {
    status = 200
    self.kind = kind
    body = .file(file, 0..<file.size)
    tag = file.tag
  }

  /// Something that went wrong, said to a person and to a program.
  static func failure(_ status: Int, _ text: String) -> HTTPResponse {
    HTTPResponse(.json, Array((JSONValue.object(["error": .string(text)]).line + "\n").utf8), status: status)
  }

  /// As the request wants it: nothing where the client has it, a part where it asks for one.
  func answering(_ request: HTTPRequest) -> HTTPResponse {
    guard status == 200, let tag else { return self }
    var reply = self
    let quoted = "\"\(tag)\""
    reply.headers.append(("ETag", quoted))
    reply.headers.append(("Accept-Ranges", "bytes"))
    if request.has(tag) {
      reply.status = 304
      reply.body = .bytes([])
      return reply
    }
    // The part of another version is of no use.
    if let condition = request.header("If-Range"), condition != quoted { return reply }
    guard let text = request.header("Range"), let wanted = Self.range(text, of: body.count) else { return reply }
    guard let range = wanted else {
      var refusal = HTTPResponse.failure(416, "the file has \(body.count) bytes")
      refusal.headers.append(("Content-Range", "bytes */\(body.count)"))
      return refusal
    }
    reply.status = 206
    reply.headers.append(("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(body.count)"))
    switch body {
    case .bytes(let bytes): reply.body = .bytes(Array(bytes[range]))
    case .file(let file, let all):
      reply.body = .file(file, (all.lowerBound + range.lowerBound)..<(all.lowerBound + range.upperBound))
    }
    return reply
  }

  /// One range of bytes. Several are not answered in parts, nor is what is no range: the whole is sent then.
  ///
  /// - Returns: nil for the whole, the inner nil for nothing that is there.
  private static func range(_ text: String, of count: Int) -> Range<Int>?? {
    guard text.hasPrefix("bytes="), !text.contains(",") else { return nil }
    let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    func number(_ text: Substring) -> Int? {
      text.isEmpty || !text.utf8.allSatisfy { (48...57).contains($0) } ? nil : Int(text) ?? .max
    }
    guard ends.count == 2 else { return nil }
    switch (number(ends[0]), number(ends[1])) {
    case (nil, let last?) where ends[0].isEmpty:
      return last == 0 || count == 0 ? .some(nil) : max(0, count - last)..<count
    case (let first?, let last) where last != nil || ends[1].isEmpty:
      if let last, last < first { return nil }
      return first >= count ? .some(nil) : first..<(min(last ?? .max, count - 1) + 1)
    default: return nil
    }
  }
}
