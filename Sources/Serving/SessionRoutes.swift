// The routes of `serve`: the pages, and each session's data. Every part of a path must be a known name, so no path
// leads out of the output.

import Encoding
import FileSystem
import Films
import FrameBatches
import SegmentEncoder
import Sessions
import Showing

package final class SessionRoutes: Sendable {
  let catalog: SessionCatalog
  private let scratch: String
  private let freeSpace: FreeSpace
  private let version: String
  private let films: FilmCache
  /// JPEGs of small pictures.
  private let thumbnails = LazyCache<TaggedAnswer, [UInt8]>(capacity: 2_000)
  private let meter = RequestMeter()
  let gates: RouteGates
  /// Maps as JSON. A map has some hundred bytes a gap.
  private let maps = LazyCache<TaggedAnswer, [UInt8]>(capacity: 8 << 20) { $0.count }
  private let packed = PackedAnswers()

  /// Seconds after which players that got no playlist ask again.
  private static let noEntryRetryS = 2

  private struct TaggedAnswer: Hashable {
    let session: SessionID
    let tag: String
  }

  /// - Parameters:
  ///   - scratch: a directory for films that are being downloaded.
  ///   - freeSpace: the free space that films leave on their disk.
  ///   - version: of the program, for metrics.
  package convenience init(
    _ catalog: SessionCatalog, scratch: String, _ freeSpace: FreeSpace = FreeSpace(), version: String
  ) {
    self.init(catalog, scratch: scratch, freeSpace, version: version, RouteGates())
  }

  init(
    _ catalog: SessionCatalog, scratch: String, _ freeSpace: FreeSpace = FreeSpace(), version: String,
    _ gates: RouteGates
  ) {
    (self.catalog, self.scratch, self.version, self.gates) = (catalog, scratch, version, gates)
    self.freeSpace = freeSpace
    films = FilmCache { (try? freeSpace.room(at: scratch)) ?? .max }
  }

  /// Removes what is cached of sessions that were deleted or removed. Call it every few seconds.
  package func forgetRemovedSessions() throws {
    let cached = films.sessions.union((thumbnails.keys + maps.keys).map(\.session)).union(packed.sessions)
    let removed = try catalog.forgetRemoved(and: cached)
    guard !removed.all.isEmpty else { return }
    films.remove(deleted: removed.deleted, missing: removed.missing)
    thumbnails.removeAll { removed.all.contains($0.session) }
    maps.removeAll { removed.all.contains($0.session) }
    packed.remove(removed.all)
  }

  package func answer(_ request: HTTPRequest) -> HTTPResponse {
    meter.begin()
    let reply: HTTPResponse
    do {
      let parts = request.parts
      let plain = try route(request, parts) ?? .failure(404, "nothing is at \(request.path)")
      reply = try packed.answer(plain, to: request, of: Self.session(at: parts))
    } catch let missing as MissingEncoder {
      reply = .failure(501, "\(missing)")
    } catch let deleted as SessionDeleted {
      reply = .failure(410, deleted.what)
    } catch {
      reply = .failure(error)
    }
    meter.end(status: reply.status)
    return reply
  }

  /// The routes; the first one that matches answers.
  static let table: [Route] = [
    Route(page: "") { _ in Assets.page("list.html") },
    Route(page: "compare") { _ in Assets.page("compare.html") },
    Route("sessions.json", through: .list) { try $0.list($1) },
    Route("search.json", through: .search) { try $0.search($1) },
    Route(page: "assets", "*") { Assets.file($0[1]) },
    Route(page: "favicon.ico") { _ in Assets.file("favicon.svg") },
    Route("healthz", through: .state) { routes, _ in try routes.health() },
    Route("readyz", through: .state) { routes, _ in try routes.health() },
    Route("metrics", through: .state) { routes, _ in HTTPResponse(.metrics, Array(try routes.metrics().utf8)) },
    Route(page: "sessions", "*") { parts in SessionID(parts[1]).map { .redirection(to: "/sessions/\($0)/") } },
    // The page itself reports a missing or unreadable session.
    Route(page: "sessions", "*", "") { SessionID($0[1]) == nil ? nil : Assets.page("player.html") },
    Route(ofSession: "frame.jpg", through: .picture) { try $0.frame(of: $1, as: .jpeg, $2) },
    Route(ofSession: "frame.png", through: .picture) { try $0.frame(of: $1, as: .png, $2) },
    Route(ofSession: "thumbnail.jpg", through: .picture, isGlance: true) { try $0.thumbnail(of: $1, $2) },
    Route(ofPlayback: "timeline.json") { _, playback, _ in
      HTTPResponse(.json, playback.timeline, tag: playback.digest)
    },
    Route(ofSession: "faults.json", through: .session, isGlance: true) { try $0.faults(of: $1, $2) },
    Route(ofPlayback: "session.m3u8") { try $0.playlist("session.m3u8", of: $1, $2) },
    Route(ofPlayback: "iframes.m3u8") { try $0.playlist("iframes.m3u8", of: $1, $2) },
    Route(ofPlayback: "multivariant.m3u8") { try $0.playlist("multivariant.m3u8", of: $1, $2) },
    Route(ofPlayback: "captions.m3u8") { try $0.playlist("captions.m3u8", of: $1, $2) },
    Route(ofPlayback: "pictures.jsonl", through: .picture) { try $0.pictures(of: $1, $2) },
    Route(ofPlayback: "map.json", through: .map) { try $0.map(of: $1, $2) },
    Route(ofFilm: "session.mp4", as: nil),
    Route(ofFilm: "session.gif", as: .gif),
    Route(ofFilm: "session.webp", as: .webp),
    Route(ofSession: "*", through: .file) { try $0.file($2.parts[2], of: $1) },
  ]

  private func route(_ request: HTTPRequest, _ parts: [String]) throws -> HTTPResponse? {
    if let gone = try deletion(at: parts, request) { return gone }
    return try Self.table.first { $0.matches(parts) }?.answer(request, at: parts, of: self)
  }

  /// Returns the answer for every path of a deleted session; nil for other paths.
  private func deletion(at parts: [String], _ request: HTTPRequest) throws -> HTTPResponse? {
    guard let session = Self.session(at: parts) else { return nil }
    let tombstone =
      try catalog.isRemote
      ? gates.pass(.session, request) { try catalog.tombstone(of: session, progress: request.requireClient) }
      : catalog.tombstone(of: session)
    return tombstone.map { .failure(410, SessionDeleted($0).what) }
  }

  /// The session of a path; nil for paths of no session.
  private static func session(at parts: [String]) -> SessionID? {
    parts.count > 1 && parts[0] == "sessions" ? SessionID(parts[1]) : nil
  }

  /// The server is ready if the output can be read.
  private func health() throws -> HTTPResponse {
    try catalog.requireOutput()
    return HTTPResponse(.text, Array("ok\n".utf8))
  }

  /// Returns the answer of `body` for the session as it is now, or the failure that there is no session.
  func withPlayback(
    of session: SessionID, _ body: (SessionPlayback) throws -> HTTPResponse?
  ) throws -> HTTPResponse? {
    guard let playback = try catalog.playback(of: session) else { return Self.noSession(session) }
    return try body(playback)
  }

  /// The numbers of faults. With `for=list`, long sessions of a store are not read for them.
  private func faults(of session: SessionID, _ request: HTTPRequest) throws -> HTTPResponse? {
    if request.argument("for") == "list", catalog.isCostly(session) {
      return HTTPResponse(.json, SessionPlayback.unreadFaults(of: session))
    }
    try catalog.prepare(session, progress: request.requireClient)
    return try withPlayback(of: session) { HTTPResponse(.json, $0.faults, tag: "\($0.digest)-faults") }
  }

  /// A published file, or a fragment, an initialization or captions of the playlists.
  private func file(_ name: String, of session: SessionID) throws -> HTTPResponse? {
    if let file = try catalog.file(name, of: session) {
      let kinds: [(end: String, kind: HTTPResponse.Kind)] = [
        (".mp4", .mp4), (".json", .json), (".m4s", .fragment), (".vtt", .captions),
      ]
      return HTTPResponse(kinds.first { name.hasSuffix($0.end) }?.kind ?? .text, file)
    }
    return try withPlayback(of: session) { playback in
      if let bytes = try playback.fragment(named: name) { return HTTPResponse(.fragment, bytes, tag: name) }
      if let bytes = try playback.initialization(named: name) { return HTTPResponse(.mp4, bytes, tag: name) }
      if let bytes = playback.captions(named: name) { return HTTPResponse(.captions, bytes, tag: name) }
      return try catalog.keptFile(named: name, of: session).map {
        HTTPResponse(name.hasSuffix(".m4s") ? .fragment : name.hasSuffix(".vtt") ? .captions : .mp4, $0)
      }
    }
  }

  private func playlist(
    _ name: String, of playback: SessionPlayback, _ request: HTTPRequest
  ) throws -> HTTPResponse? {
    if let kept = try catalog.keptPlaylist(named: name, of: playback) {
      return HTTPResponse(.playlist, kept.text, tag: kept.tag)
    }
    if playback.playlist.isEmpty { return Self.noEntry(of: playback) }
    let tag = "\(playback.digest)-\(name)"
    if name == "session.m3u8" { return HTTPResponse(.playlist, playback.playlist, tag: tag) }
    return try playback.playlist(named: name, progress: request.requireClient)
      .map { HTTPResponse(.playlist, $0, tag: tag) }
  }

  /// The refusal of a playlist that would be empty, which players cannot use.
  private static func noEntry(of playback: SessionPlayback) -> HTTPResponse {
    var refusal = HTTPResponse.failure(
      503,
      "the playlist of \(playback.session) begins when the next batch or some seconds tell how long its last picture "
        + "is shown; try again")
    refusal.headers.append(("Retry-After", "\(noEntryRetryS)"))
    return refusal
  }

  private static func noSession(_ session: SessionID) -> HTTPResponse {
    .failure(404, "there is no session \(session); it may have been pruned, or the address is wrong")
  }

  /// A small picture: the one on screen at the instant `t`, the last one with `t=last`, or the first one. One segment is decoded.
  private func thumbnail(of session: SessionID, _ request: HTTPRequest) throws -> HTTPResponse {
    if let text = request.argument("t") {
      if text != "last" { try catalog.prepare(session, progress: request.requireClient) }
      return try onScreen(of: session) {
        let frame =
          try text == "last" ? catalog.lastFrame(of: session) : catalog.frame(of: session, at: request.instant("t"))
        return try frame.map { frame in
          try thumbnail(of: session, tag: "\(frame.tag)-thumbnail", request) { try frame.thumbnail() }
        }
      }
    }
    guard let first = try catalog.firstSegment(of: session) else { return Self.noSession(session) }
    return try thumbnail(of: session, tag: "\(first.sha256.prefix(32))-thumbnail", request) {
      try catalog.thumbnail(of: first, of: session)
    }
  }

  private func thumbnail(
    of session: SessionID, tag: String, _ request: HTTPRequest, decode: () throws -> [UInt8]
  ) throws -> HTTPResponse {
    // Do not decode the picture for a client that has it.
    if request.has(tag) { return HTTPResponse(.jpeg, [], tag: tag) }
    let image = try thumbnails.value(TaggedAnswer(session: session, tag: tag), decode)
    return HTTPResponse(.jpeg, image, tag: tag)
  }

  /// The picture on screen at the instant `t`.
  private func frame(of session: SessionID, as format: ImageFormat, _ request: HTTPRequest) throws -> HTTPResponse {
    try onScreen(of: session) {
      let maxSide = try request.pictureSide()
      guard let frame = try catalog.frame(of: session, at: request.instant("t")) else { return nil }
      let tag = frame.tag + (maxSide.map { "-\($0)" } ?? "")
      // Do not decode the picture for a client that has it.
      let image = request.has(tag) ? [] : try frame.image(as: format, maxSide: maxSide)
      return HTTPResponse(format == .png ? .png : .jpeg, image, tag: tag)
    }
  }

  /// Returns the answer of `body`, or the failure that there is no such session, instant or picture.
  private func onScreen(of session: SessionID, _ body: () throws -> HTTPResponse?) throws -> HTTPResponse {
    do {
      return try body() ?? Self.noSession(session)
    } catch let nothing as NothingOnScreen {
      return .failure(404, "\(nothing)", nothing.members)
    }
  }

  /// The pictures that matter, one a line. Nothing of them is kept.
  private func pictures(of playback: SessionPlayback, _ request: HTTPRequest) throws -> HTTPResponse {
    let (clip, choice) = (try request.clip(), try request.pictureChoice())
    let range = try playback.range(of: clip)
    let tag = "\(playback.digest)-pictures-\(range.lowerBound)-\(range.upperBound)-\(choice.tag)"
    if request.has(tag) { return HTTPResponse(.jsonLines, [], tag: tag) }
    var list = try playback.pictures(of: clip, choice)
    if list.needsDecoding { try list.decode(progress: request.requireClient) }
    let lines = try list.lines(progress: request.requireClient)
    var reply = HTTPResponse(.jsonLines, lines, tag: tag)
    if list.leftOut > 0 { reply.headers.append(("X-Pictures-Left-Out", "\(list.leftOut)")) }
    return reply
  }

  /// The map of the film that the same arguments name.
  private func map(of playback: SessionPlayback, _ request: HTTPRequest) throws -> HTTPResponse {
    let clip = try request.clip()
    let tag = "\(playback.digest)\(clip.name(in: try playback.range(of: clip)))-map"
    if request.has(tag) { return HTTPResponse(.json, [], tag: tag) }
    let map = try maps.value(TaggedAnswer(session: playback.session, tag: tag)) {
      try playback.map(of: clip, progress: request.requireClient).json.bytes() + [UInt8(ascii: "\n")]
    }
    return HTTPResponse(.json, map, tag: tag)
  }

  /// The session as a film, or a part of it.
  ///
  /// - Parameter format: of an animated picture; nil for an MP4.
  func film(of session: SessionID, as format: AnimationFormat?, _ request: HTTPRequest) throws -> HTTPResponse? {
    var wanted: (request: FilmCache.Request, make: FilmMaker)?
    let reply = try gates.pass(.session, request) {
      try catalog.prepare(session, progress: request.requireClient)
      return try withPlayback(of: session) { playback in
        let clip = try request.clip()
        let animation = try format.map { (format: $0, maxSide: try request.maxSide()) }
        let range = try playback.range(of: clip)
        let part = clip.name(in: range)
        let tag = playback.digest + part + (animation.map { "-\($0.format.rawValue)-\($0.maxSide)" } ?? "")
        // Do not make the film for a client that has it.
        if !request.has(tag) {
          let film = FilmCache.Request(
            key: tag, session: session,
            bytes: try animation.map { try playback.animationBytes(of: clip, as: $0.format, maxSide: $0.maxSide) }
              ?? playback.bytes(in: range),
            isAnimation: animation != nil, isAbandoned: request.isAbandoned)
          wanted = (
            film,
            { [scratch, freeSpace] requireClient in
              try playback.film(of: clip, as: animation, in: scratch) {
                try requireClient()
                // Others write to the disk, too.
                try freeSpace.require(at: scratch)
              }
            }
          )
        }
        var reply = HTTPResponse(format.map { $0 == .gif ? .gif : .webp } ?? .mp4, [], tag: tag)
        let name = "\(session)\(part).\(format?.rawValue ?? "mp4")"
        reply.headers.append(("Content-Disposition", "attachment; filename=\"\(name)\""))
        return reply
      }
    }
    guard var reply, let wanted else { return reply }
    let film = try films.film(wanted.request, make: wanted.make)
    reply.body = .file(film, 0..<film.size)
    return reply
  }

  private typealias FilmMaker = (_ requireClient: () throws -> Void) throws -> OpenFile

  /// The sessions and instants at which words are on screen: `/search.json?text=WORDS`.
  private func search(_ request: HTTPRequest) throws -> HTTPResponse {
    let text = request.argument("text") ?? ""
    guard let query = TextQuery(text) else { return .failure(400, TextQuery.rule) }
    let answer = try catalog.textAnswer(to: query, progress: request.requireClient)
    let json = answer.json(for: text).bytes() + [UInt8(ascii: "\n")]
    return HTTPResponse(.json, json, tag: Digest.of(json))
  }

  private func metrics() throws -> String {
    var text = MetricsText()
    meter.write(to: &text)
    let totals = try catalog.listing.totals()
    text.gauge("encoder_worker_sessions", "Sessions in the output.", totals.sessions)
    text.gauge("encoder_worker_session_bytes", "Bytes of their videos.", totals.bytes)
    text.gauge("encoder_worker_output_free_bytes", "Free bytes on the output's file system.", try catalog.freeBytes())
    text.process(version: version)
    return text.text
  }
}
