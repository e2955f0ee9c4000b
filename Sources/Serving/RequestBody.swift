// Requests with bodies: a route decides from the headers whether it takes the body, gets the body in pieces, and answers at its end.
// A server without such routes drops all bodies.

import FileSystem

/// The decision on a request whose headers have come.
package enum Admission {
  /// Answer now; the body is not read.
  case answer(HTTPResponse)
  /// Read the body.
  case receive(any BodyReceiver)
}

/// Takes the body of one request. All calls come from one thread at a time.
package protocol BodyReceiver: AnyObject {
  /// Takes the next bytes of the body, at most 32 KiB. The client waits meanwhile.
  ///
  /// - Returns: an answer that ends the request; nil to go on.
  func take(_ bytes: UnsafeRawBufferPointer) -> HTTPResponse?
  /// The body is complete. Returns the answer.
  func finish() -> HTTPResponse
  /// The connection has ended before the body did.
  func abandon()
}

/// Routes that take bodies.
package struct BodyRoutes: Sendable {
  /// Decides on a request.
  let admit: @Sendable (HTTPRequest) -> Admission
  /// Makes the answer to a request that the server itself refuses, from a status and a text.
  let refusal: @Sendable (_ status: Int, _ text: String) -> HTTPResponse
  let limits: ConnectionTable.Limits

  /// - Parameters:
  ///   - bytesPerSecond: the least speed of a body after the first seconds.
  ///   - totalMs: the longest time for a body.
  package init(
    bytesPerSecond: Int = 4_096, totalMs: Int = 3_600_000,
    refusal: @escaping @Sendable (_ status: Int, _ text: String) -> HTTPResponse,
    admit: @escaping @Sendable (HTTPRequest) -> Admission
  ) {
    self.admit = admit
    self.refusal = refusal
    limits = ConnectionTable.Limits(
      bytesPerSecond: bytesPerSecond, bodyMs: totalMs, late: refusal(408, "the body comes too slowly").early)
  }
}

extension HTTPResponse {
  /// The bytes of a response that ends its connection, for a client that has not sent its whole body.
  var early: [UInt8] {
    guard case .bytes(let bytes) = body else { return [] }
    let fields =
      headers + [("Content-Type", kind.rawValue), ("Content-Length", "\(bytes.count)"), ("Connection", "close")]
    let head = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
    return Array("HTTP/1.1 \(status) Refused\r\n\(head)\r\n".utf8) + bytes
  }
}
