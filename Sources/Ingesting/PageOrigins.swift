// The web pages that may send batches and pictures: a browser asks first (a preflight), and shows a page the answers that name its origin.

import FileSystem
import Serving

/// The origins of `--ingest-origin`: `https://HOST[:PORT]`.
package struct PageOrigins: Sendable {
  private static let methods = "GET, PUT, POST"
  /// The headers that a page may send beside those that every page may send.
  private static let headers =
    "Authorization, Content-Type, Content-Digest, Idempotency-Key, traceparent, tracestate"
  /// The headers of answers that a page may read.
  private static let readable = "Location, Retry-After, Warning"
  /// Seconds for which a browser remembers the answer to a preflight.
  private static let rememberedS = 600

  private let origins: Set<String>

  /// - Parameter origins: as browsers write them: lower case, without a path.
  package init(_ origins: [String] = []) { self.origins = Set(origins) }

  /// The reason why a text is no origin; nil if it is one.
  package static func fault(of text: String) -> String? {
    let isWhole = HTTPAddress(argument: text).fault == nil && HTTPAddress(argument: text).name == text
    return isWhole && text == text.lowercased()
      ? nil : "it has to be https://HOST[:PORT] or http://HOST[:PORT], in lower case and without a path"
  }

  /// The page that a request comes from; nil if it comes from no page, or from one that may not send.
  func origin(of request: HTTPRequest) -> String? {
    request.header("Origin").flatMap { origins.contains($0) ? $0 : nil }
  }

  func preflight(of origin: String) -> HTTPResponse {
    var answer = HTTPResponse(.text, [], status: 204)
    answer.headers = [
      ("Access-Control-Allow-Methods", Self.methods), ("Access-Control-Allow-Headers", Self.headers),
      ("Access-Control-Max-Age", "\(Self.rememberedS)"),
    ]
    return Self.shown(answer, to: origin)
  }

  /// The decision on a request of a page, with answers that the page can read.
  func shown(_ admission: Admission, to origin: String) -> Admission {
    switch admission {
    case .answer(let answer): .answer(Self.shown(answer, to: origin))
    case .receive(let receiver): .receive(PageUpload(receiver, of: origin))
    }
  }

  fileprivate static func shown(_ answer: HTTPResponse, to origin: String) -> HTTPResponse {
    var answer = answer
    answer.headers += [
      ("Access-Control-Allow-Origin", origin), ("Access-Control-Expose-Headers", readable), ("Vary", "Origin"),
    ]
    return answer
  }
}

/// A body from a page.
private final class PageUpload: BodyReceiver {
  private let receiver: any BodyReceiver
  private let origin: String

  init(_ receiver: any BodyReceiver, of origin: String) { (self.receiver, self.origin) = (receiver, origin) }

  func take(_ bytes: UnsafeRawBufferPointer) -> HTTPResponse? {
    receiver.take(bytes).map { PageOrigins.shown($0, to: origin) }
  }

  func finish() -> HTTPResponse { PageOrigins.shown(receiver.finish(), to: origin) }

  func abandon() { receiver.abandon() }
}
