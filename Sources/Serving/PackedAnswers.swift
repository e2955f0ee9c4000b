// Answers of a server packed with gzip (RFC 9110, 8.4.1.3): timelines, playlists and lists grow with their session, and shrink to a tenth.

import FileSystem
import FrameBatches
import Glibc

final class PackedAnswers: Sendable {
  private struct Key: Hashable {
    let session: SessionID
    let kind: HTTPResponse.Kind
    let tag: String
  }

  /// A smaller answer fits some packets.
  private static let minimumBytes = 4 << 10
  /// A larger file is sent as it is.
  private static let maximumBytes = 64 << 20

  private let packed = LazyCache<Key, [UInt8]>(capacity: 16 << 20) { $0.count }
  /// Limits memory: a text and its packed form.
  private let gate = RequestGate<UInt64>(width: 2, waiting: 256)

  var sessions: Set<SessionID> { Set(packed.keys.map(\.session)) }

  func remove(_ sessions: Set<SessionID>) { packed.removeAll { sessions.contains($0.session) } }

  /// Returns an answer packed if its client takes that, and if it is a text that is worth it. A part of an answer is never packed.
  ///
  /// - Parameter session: whose answer is kept; nil to pack it for each request.
  func answer(_ plain: HTTPResponse, to request: HTTPRequest, of session: SessionID?) throws -> HTTPResponse {
    guard plain.status == 200, plain.kind.isText else { return plain }
    // The client has this version, packed or plain.
    if let tag = plain.tag, request.has(tag) {
      var known = plain
      if request.hasExactly(HTTPRequest.packed(tag)) { known.tag = HTTPRequest.packed(tag) }
      return known
    }
    guard (Self.minimumBytes...Self.maximumBytes).contains(plain.body.count) else { return plain }
    var reply = plain
    reply.headers.append(("Vary", "Accept-Encoding"))
    guard request.takesGzip, request.header("Range") == nil else { return reply }
    let bytes: [UInt8]
    if let session, let tag = plain.tag {
      bytes = try packed.value(Key(session: session, kind: plain.kind, tag: tag)) { try pack(plain.body, for: request) }
    } else {
      bytes = try pack(plain.body, for: request)
    }
    reply.body = .bytes(bytes)
    reply.tag = plain.tag.map(HTTPRequest.packed)
    reply.headers.append(("Content-Encoding", "gzip"))
    return reply
  }

  private func pack(_ body: HTTPResponse.Body, for request: HTTPRequest) throws -> [UInt8] {
    try gate.pass(for: request.network, isAbandoned: request.isAbandoned) {
      switch body {
      case .bytes(let bytes): return try Gzip.packed(bytes)
      case .file(let file, _):
        let name = "the file of an answer"
        guard case .bytes(let bytes) = try readRegularFile(file.descriptor, path: name, limit: Self.maximumBytes) else {
          throw DiskError("read", name, code: EFBIG)
        }
        return try Gzip.packed(bytes)
      }
    }
  }
}

extension HTTPResponse.Kind {
  /// Whether gzip makes it smaller. Pictures and videos are packed already.
  fileprivate var isText: Bool {
    switch self {
    case .html, .css, .script, .svg, .json, .jsonLines, .problem, .text, .playlist, .captions: true
    case .jpeg, .png, .gif, .webp, .metrics, .mp4, .fragment: false
    }
  }
}

extension HTTPRequest {
  /// Returns the tag of the packed form of an answer.
  static func packed(_ tag: String) -> String { tag + "-gzip" }

  /// Whether the client takes gzip (RFC 9110, 12.5.3).
  fileprivate var takesGzip: Bool {
    (header("Accept-Encoding") ?? "").split(separator: ",").contains { item in
      let parts = item.split(separator: ";").map { $0.filter { $0 != " " }.lowercased() }
      return parts.first == "gzip" && !parts.dropFirst().contains { $0.wholeMatch(of: /q=0(\.0*)?/) != nil }
    }
  }
}
