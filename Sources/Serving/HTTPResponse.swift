import FileSystem
import JSON

/// A response of HTTP (RFC 9110), as a value.
package struct HTTPResponse {
  package enum Body {
    case bytes([UInt8])
    case file(OpenFile, Range<Int>)

    var count: Int {
      switch self {
      case .bytes(let bytes): bytes.count
      case .file(_, let range): range.count
      }
    }
  }

  package enum Kind: String {
    case html = "text/html; charset=utf-8"
    case css = "text/css; charset=utf-8"
    case script = "text/javascript; charset=utf-8"
    case svg = "image/svg+xml"
    case jpeg = "image/jpeg"
    case png = "image/png"
    case gif = "image/gif"
    case webp = "image/webp"
    case json = "application/json"
    case jsonLines = "application/jsonl"
    case problem = "application/problem+json"
    case text = "text/plain; charset=utf-8"
    case metrics = "text/plain; version=0.0.4; charset=utf-8"
    case mp4 = "video/mp4"
    case fragment = "video/iso.segment"
    case playlist = "application/vnd.apple.mpegurl"
    case captions = "text/vtt; charset=utf-8"
  }

  package var status = 200
  let kind: Kind
  package var headers: [(name: String, value: String)] = []
  package var body: Body
  /// Identifies the body's version. A response without a tag is sent as a whole only.
  var tag: String?

  package init(_ kind: Kind, _ bytes: [UInt8], status: Int = 200, tag: String? = nil) {
    self.status = status
    self.kind = kind
    body = .bytes(bytes)
    self.tag = tag
  }

  init(_ kind: Kind, _ file: OpenFile) {
    self.kind = kind
    body = .file(file, 0..<file.size)
    tag = file.stamp.tag
  }

  /// An error as JSON.
  static func failure(_ status: Int, _ text: String, _ facts: [String: JSONValue] = [:]) -> HTTPResponse {
    let object = JSONValue.object(facts.merging(["error": .string(text)]) { $1 })
    return HTTPResponse(.json, Array((object.line + "\n").utf8), status: status)
  }

  /// An error with the status of its kind.
  static func failure(_ error: any Error) -> HTTPResponse {
    let consequence = error.consequence
    guard let busy = error as? any BusyError else {
      return failure(consequence.httpStatus, "\(error)" + (consequence.isTransient ? "; try again" : ""))
    }
    var refusal = failure(consequence.httpStatus, "\(busy); try again in \(busy.retryAfterS) s")
    refusal.headers.append(("Retry-After", "\(busy.retryAfterS)"))
    return refusal
  }

  static func redirection(to path: String) -> HTTPResponse {
    var reply = HTTPResponse(.text, Array("see \(path)\n".utf8), status: 308)
    reply.headers.append(("Location", path))
    return reply
  }

  /// Returns the response to a conditional request or a request for a range.
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
    // The client has a part of another version.
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

  /// Parses a Range header with one range of bytes. Others are ignored, as RFC 9110 (14.2) allows.
  ///
  /// - Returns: nil for the whole body, an inner nil for a range outside of it.
  private static func range(_ text: String, of count: Int) -> Range<Int>?? {
    guard text.hasPrefix("bytes="), !text.contains(",") else { return nil }
    let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    func number(_ text: Substring) -> Int? {
      text.isEmpty || !text.isDecimal ? nil : Int(text) ?? .max
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
