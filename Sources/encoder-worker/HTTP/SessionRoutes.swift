// The routes of `serve`: pages, and of each session what its page asks for. A path is taken apart and every part of it has to
// be a name that is known here, so none leads out of the output.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import SegmentEncoder
import Sessions
import Synchronization

final class SessionRoutes: Sendable {
  private let catalog: SessionCatalog
  private let films: FilmCache
  private let thumbnails = ThumbnailCache()
  private let meter = RequestMeter()
  /// A segment is read as a whole.
  private let gate = Semaphore(width: 8)

  /// - Parameter scratch: a directory for films that are being downloaded.
  init(_ catalog: SessionCatalog, scratch: String) {
    self.catalog = catalog
    films = FilmCache(scratch: scratch)
  }

  func answer(_ request: HTTPRequest) -> HTTPResponse {
    meter.begin()
    let reply: HTTPResponse
    do {
      reply = try route(request) ?? .failure(404, "nothing is at \(request.path)")
    } catch let bad as BadSession {
      reply = .failure(422, "\(bad)")
    } catch let bad as DamagedOutput {
      reply = .failure(422, "\(bad)")
    } catch {
      reply = .failure(503, "\(error); try again")
    }
    meter.end(status: reply.status)
    return reply
  }

  private func route(_ request: HTTPRequest) throws -> HTTPResponse? {
    let parts = request.parts
    switch (parts.first, parts.count) {
    case ("", 1): return Assets.page("list.html")
    case ("sessions.json", 1):
      let list = try catalog.list()
      return HTTPResponse(.json, list, tag: Digest.of(list))
    case ("assets", 2): return Assets.file(parts[1])
    case ("favicon.ico", 1): return Assets.file("favicon.svg")
    case ("healthz", 1), ("readyz", 1):
      // Whether the output can be read is all there is to be ready for; how much is in it does not matter.
      try catalog.requireOutput()
      return HTTPResponse(.text, Array("ok\n".utf8))
    case ("metrics", 1): return HTTPResponse(.metrics, Array(try metrics().utf8))
    case ("sessions", 2):
      guard let session = SessionID(parts[1]) else { return nil }
      var reply = HTTPResponse(.text, Array("see /sessions/\(session)/\n".utf8), status: 308)
      reply.headers.append(("Location", "/sessions/\(session)/"))
      return reply
    case ("sessions", 3):
      guard let session = SessionID(parts[1]) else { return nil }
      return try file(parts[2], of: session, request)
    default: return nil
    }
  }

  private func file(_ name: String, of session: SessionID, _ request: HTTPRequest) throws -> HTTPResponse? {
    if let file = try catalog.file(name, of: session) {
      return HTTPResponse(name.hasSuffix(".mp4") ? .mp4 : name.hasSuffix(".json") ? .json : .text, file)
    }
    // The page itself says of a session that it is not there, or cannot be read.
    if name.isEmpty { return Assets.page("player.html") }
    guard let playback = try catalog.playback(of: session) else {
      return .failure(404, "there is no session \(session); it may have been pruned, or the address is wrong")
    }
    switch name {
    case "timeline.json": return HTTPResponse(.json, playback.timeline, tag: playback.digest)
    case "faults.json": return HTTPResponse(.json, playback.faults, tag: "\(playback.digest)-faults")
    case "session.m3u8": return HTTPResponse(.playlist, playback.playlist, tag: playback.digest)
    case "iframes.m3u8", "multivariant.m3u8":
      return try gate.pass { try playback.playlist(named: name) }.map {
        HTTPResponse(.playlist, $0, tag: "\(playback.digest)-\(name)")
      }
    case "thumbnail.jpg":
      return try thumbnails.picture(of: playback).map { HTTPResponse(.jpeg, $0, tag: playback.digest) }
    case "session.mp4":
      // A client that has it need not wait until it is made.
      var reply = HTTPResponse(.mp4, [])
      if !request.has(playback.digest) {
        guard let film = try films.film(of: playback) else { return nil }
        reply = HTTPResponse(.mp4, film)
      }
      reply.tag = playback.digest
      reply.headers.append(("Content-Disposition", "attachment; filename=\"\(session).mp4\""))
      return reply
    default:
      if let bytes = try gate.pass({ try playback.fragment(named: name) }) {
        return HTTPResponse(.fragment, bytes, tag: name)
      }
      return try gate.pass { try playback.initialization(named: name) }
        .map { HTTPResponse(.mp4, $0, tag: name) }
    }
  }

  private func metrics() throws -> String {
    var text = MetricsText()
    meter.write(to: &text)
    let sessions = try catalog.sessions()
    text.gauge("encoder_worker_sessions", "Sessions in the output.", sessions.count)
    text.gauge("encoder_worker_session_bytes", "Bytes of their videos.", sessions.reduce(0) { $0 + $1.bytes })
    text.gauge("encoder_worker_output_free_bytes", "Free bytes on the output's file system.", try catalog.freeBytes())
    text.process()
    return text.text
  }
}

/// Films that are being downloaded: files without names, made when they are first asked for, one at a time.
final class FilmCache: Sendable {
  private static let most = 4

  private let scratch: String
  /// The one asked for last comes last.
  private let films = Mutex<[(digest: String, file: OpenFile)]>([])
  private let making = Mutex<Void>(())

  init(scratch: String) { self.scratch = scratch }

  func film(of playback: SessionPlayback) throws -> OpenFile? {
    if let known = known(playback) { return known }
    return try making.withLock { _ in
      if let known = known(playback) { return known }
      guard let made = try playback.film(in: scratch) else { return nil }
      films.withLock { films in
        films.append((playback.digest, made))
        if films.count > Self.most { films.removeFirst() }
      }
      return made
    }
  }

  private func known(_ playback: SessionPlayback) -> OpenFile? {
    films.withLock { films in
      guard let index = films.firstIndex(where: { $0.digest == playback.digest }) else { return nil }
      let found = films.remove(at: index)
      films.append(found)
      return found.file
    }
  }
}

/// Sessions' first pictures, small; made when they are first asked for, one at a time.
final class ThumbnailCache: Sendable {
  private static let most = 2_000

  private let pictures = Mutex<[String: [UInt8]]>([:])
  private let making = Mutex<Void>(())

  /// - Returns: a JPEG; nil when it cannot be had.
  func picture(of playback: SessionPlayback) throws -> [UInt8]? {
    if let known = pictures.withLock({ $0[playback.firstDigest] }) { return known }
    return try making.withLock { _ in
      if let known = pictures.withLock({ $0[playback.firstDigest] }) { return known }
      guard let made = try playback.thumbnail() else { return nil }
      pictures.withLock { pictures in
        if pictures.count >= Self.most { pictures.removeAll() }
        pictures[playback.firstDigest] = made
      }
      return made
    }
  }
}
