import FileSystem
import FrameBatches

/// `behind/SESSION` marks a session in an object store.
struct MarkerObjects: ViewMarkers {
  private static let prefix = "behind/"
  /// An older marker belongs to a dead worker, in seconds.
  private static let deadS = 600

  let objects: any ObjectClient

  static func key(of session: SessionID) -> String { prefix + session.description }

  func add(_ session: SessionID, known: ViewMarker?) throws -> ViewMarker {
    let tag = try objects.put(
      Self.key(of: session), .bytes(Array("\(WorkerID())".utf8)), .archive, when: .always)
    return ViewMarker(session: session, tag: tag)
  }

  func remove(_ marker: ViewMarker) throws {
    try objects.delete(Self.key(of: marker.session), marker.tag)
  }

  func abandoned(all: Bool, except sessions: Set<SessionID>) -> [ViewMarker] {
    var (last, found): (String?, [ViewMarker]) = (nil, [])
    // An unreachable store fails the next batch; the markers stay.
    while let page = try? objects.list(Self.prefix, after: last), let end = page.last {
      last = end.key
      for object in page {
        guard let session = SessionID(String(object.key.dropFirst(Self.prefix.count))), !sessions.contains(session),
          all || (try? objects.head(object.key)?.ageS).map({ $0 >= Self.deadS }) ?? false
        else { continue }
        found.append(ViewMarker(session: session, tag: object.tag))
      }
    }
    return found
  }

  func tidyUp() {}
}
