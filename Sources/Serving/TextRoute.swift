// `/search.json?text=WORDS`: the sessions and instants at which words are on screen.

import Sessions
import Showing

final class TextRoute: Sendable {
  private let catalog: SessionCatalog
  /// Limits memory: a search reads the files of many segments.
  private let semaphore = Semaphore(width: 2)

  init(_ catalog: SessionCatalog) { self.catalog = catalog }

  func answer(_ request: HTTPRequest) throws -> HTTPResponse {
    let text = request.argument("text") ?? ""
    guard let query = TextQuery(text) else { return .failure(400, TextQuery.rule) }
    let answer = try semaphore.pass { try catalog.textAnswer(to: query, progress: request.requireClient) }
    let json = answer.json(for: text).bytes() + [UInt8(ascii: "\n")]
    return HTTPResponse(.json, json, tag: Digest.of(json))
  }
}
