// A session that is to end, or is deleted, while pictures of it wait in batchers. `closing/HOME/SESSION` asks a batcher for batches of
// all of them; it removes the file when they are in `incoming/`. For a batcher that no process has, the asking process does it.

import FileSystem
import FrameBatches
import Glibc
import WorkQueues

package struct SessionClosing {
  /// The home of all pictures that came over HTTP.
  package static let ingest = "ingest"

  private let spool: Spool
  private let limits: Limits

  package init(_ spool: Spool, limits: Limits = Limits()) { (self.spool, self.limits) = (spool, limits) }

  /// Returns the name of a collector's batcher.
  package static func home(ofCollector path: String) -> String { "collect-" + lastComponent(of: path) }

  /// Asks for batches of all pictures of a session that wait now. Repeat it if the process of a batcher may have died since.
  ///
  /// - Returns: whether batchers of other processes still have to make some.
  package func request(_ session: SessionID) throws -> Bool {
    for entry in try Directory.entries(ifAt: spool.collectors) where entry.kind == .directory {
      let path = spool.collectors + "/" + entry.name
      let home = Self.home(ofCollector: path)
      let isConcerned = try BatchJournal(reading: path + "/journal").concerns(session.description)
      guard try isConcerned || requests(to: home).contains(session) else { continue }
      let mark = try mark(session, home)
      if let lock = try? OutputFile(restarting: path + "/lock") {
        try close(session, Batcher(path, into: spool, from: KeptFiles(), BatchRules(), limits: limits))
        unlink(mark)
        withExtendedLifetime(lock) {}
      }
    }
    if try Batcher.isOwing(spool.pictures + "/\(session)") || requests(to: Self.ingest).contains(session) {
      let mark = try mark(session, Self.ingest)
      let pictures = try HandedOverPictures(
        of: session, in: spool, BatchRules(), capture: .interval, limits: limits)
      if let pictures {
        try pictures.batcher.cut(.session(session.description)) { _ in }
        unlink(mark)
        withExtendedLifetime(pictures) {}
      }
    }
    return try spool.isClosing(session)
  }

  /// Does what processes that are dead were asked for.
  package func resume() throws {
    for home in try Directory.entries(ifAt: spool.closing) where home.kind == .directory {
      for session in try requests(to: home.name) { _ = try request(session) }
    }
  }

  /// Makes a batch of the copies that a collector has left.
  private func close(_ session: SessionID, _ batcher: Batcher) throws {
    for version in batcher.held.versions where version.place.session == session.description {
      try batcher.add(version.picture, to: version.place.stream, OneSession(session.description))
    }
    try batcher.cut(.session(session.description)) { _ in }
  }

  private func mark(_ session: SessionID, _ home: String) throws -> String {
    let directory = spool.closing + "/" + home
    try DurableFile.makeDirectories(directory)
    let mark = directory + "/\(session)"
    if !DurableFile.exists(mark) { try DurableFile.create(mark, []) }
    try Directory(opening: directory).sync()
    return mark
  }

  /// Returns the sessions of which batches are asked for.
  package func requests(to home: String) throws -> [SessionID] {
    try Directory.entries(ifAt: spool.closing + "/" + home).compactMap { SessionID($0.name) }
  }

  /// Notes that no picture of a session waits any more.
  package func finish(_ session: SessionID, in home: String) { unlink(spool.closing + "/\(home)/\(session)") }
}

/// The source of a collector's copies, while another process makes a batch of them: the files stay.
private final class KeptFiles: PictureSource {
  var folder: Directory? { nil }
  func read(_ file: FolderFile) -> SourceContent { .gone }
  func remove(_ files: [[FolderFile]]) -> [[FolderFile]] { files }
  func refined(_ pictures: [LoosePicture], before nextMs: Int64?) -> [LoosePicture] { pictures }
}
