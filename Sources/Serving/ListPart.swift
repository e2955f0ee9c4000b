// The part of the list that a request for `sessions.json` names with `limit`, `after` and `since`.

import Sessions
import Showing

enum ListPart {
  /// - Parameter place: the end of the page before; nil for the first page.
  case page(behind: ListPlace?, limit: Int)
  case changes(since: String, limit: Int)

  /// Tells pages of the same list apart. Changes have none: each request has a revision of its own.
  fileprivate var tag: String? {
    guard case .page(let place, let limit) = self else { return nil }
    // A comma parts the tags of If-None-Match.
    return "-\(limit)-\(place?.text.replacing(",", with: "_") ?? "")"
  }

  /// A client with a revision that is not known gets the first page: it has no `since`.
  fileprivate func page(of list: SessionListing) throws -> SessionListPage {
    switch self {
    case .page(let place, let limit): try list.page(behind: place, limit: limit)
    case .changes(let revision, let limit):
      try list.changes(since: revision, limit: limit) ?? list.page(behind: nil, limit: limit)
    }
  }
}

extension HTTPRequest {
  /// The part of the list; nil for all of it.
  func listPart() throws(BadArguments) -> ListPart? {
    let (after, since) = (argument("after"), argument("since"))
    let most = SessionListing.mostOnPage
    let limit = try number("limit", in: 1...most)
    if let since {
      guard after == nil else { throw BadArguments(description: "since and after exclude each other") }
      return .changes(since: since, limit: limit ?? most)
    }
    guard let after, !after.isEmpty else { return limit.map { .page(behind: nil, limit: $0) } }
    guard let place = ListPlace(after) else {
      throw BadArguments(description: "after is the text that the page before has as next")
    }
    return .page(behind: place, limit: limit ?? most)
  }
}

extension SessionRoutes {
  /// All sessions, a page of them, or what has changed since an earlier answer.
  func list(_ request: HTTPRequest) throws -> HTTPResponse {
    guard let part = try request.listPart() else {
      let list = try catalog.listing.all()
      return HTTPResponse(.json, list.json, tag: list.revision)
    }
    let page = try part.page(of: catalog.listing)
    return HTTPResponse(.json, page.json, tag: part.tag.map { page.revision + $0 })
  }

  /// Checks some sessions of the list for changes. Call it every few seconds.
  package func refreshList() throws { try catalog.refreshList() }
}
