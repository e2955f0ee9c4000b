/// The gates of `serve`. A request for one kind of work does not wait for another kind.
struct RouteGates: Sendable {
  enum Name: Int, CaseIterable {
    /// The server's state, and its metrics.
    case state
    /// The list of all sessions.
    case list
    case search
    /// Files and fragments. It limits memory: a segment is read as a whole.
    case file
    /// A session's timeline, playlists and the like. They read the manifests that are new.
    case session
    /// It limits memory and decoders: a picture takes several times its pixels.
    case picture
    /// Each map reads all manifests of a session.
    case map

    var limits: (width: Int, waiting: Int) {
      switch self {
      case .state, .list, .picture: (4, 64)
      case .search, .map: (2, 64)
      case .file, .session: (8, 256)
      }
    }
  }

  private let gates: [RequestGate<UInt64>]

  init(_ limits: (Name) -> (width: Int, waiting: Int) = { $0.limits }) {
    gates = Name.allCases.map { name in
      let limits = limits(name)
      return RequestGate(width: limits.width, waiting: limits.waiting)
    }
  }

  /// - Throws: ``ServerBusy``, ``ClientGone``, an error of `body`.
  func pass<R>(_ name: Name, _ request: HTTPRequest, _ body: () throws -> R) throws -> R {
    try gates[name.rawValue].pass(for: request.network, isAbandoned: request.isAbandoned, body)
  }
}
