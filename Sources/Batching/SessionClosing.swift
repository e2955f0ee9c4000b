// A session that is to end, or is deleted, while pictures of it wait in batchers. `closing/HOME/SESSION` asks a batcher for batches of
// all of them; it removes the file when they are in `incoming/`. For a batcher that no process has, the asking process does it.

import FileSystem
import FrameBatches
import Glibc
import WorkQueues

package struct SessionClosing {
  /// The batchers of pictures that came over HTTP.
  private static let ingest = "ingest"

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
      guard try BatchJournal.concerns(session.description, path + "/journal") else { continue }
      let mark = try mark(session, Self.home(ofCollector: path))
      if let lock = try? OutputFile(restarting: path + "/lock") {
        try close(session, Batcher(path, into: spool, from: KeptFiles(), BatchRules(), limits: limits))
        unlink(mark)
        withExtendedLifetime(lock) {}
      }
    }
    let path = spool.pictures + "/\(session)"
    if try Batcher.isOwing(path) {
      let mark = try mark(session, Self.ingest)
      let directory = try Directory(opening: path)
      if try directory.lock() {
        let batcher = try Batcher(
          path, into: spool, from: NoSource(), BatchRules(), remembers: ReceivedPicture.remembered, limits: limits)
        for picture in batcher.held.received {
          try batcher.add(picture.picture(.interval), to: "", OneSession(session.description))
        }
        try batcher.cut(.session(session.description)) { _ in }
        unlink(mark)
        withExtendedLifetime(directory) {}
      }
    }
    return try spool.isClosing(session)
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

  /// Makes the batches that a batcher is asked for.
  ///
  /// - Parameters:
  ///   - home: its name; nil for those of pictures that came over HTTP.
  ///   - close: returns whether no picture of a session waits any more.
  package func perform(in home: String?, _ close: (SessionID) throws -> Bool) throws {
    let directory = spool.closing + "/" + (home ?? Self.ingest)
    for entry in try Directory.entries(ifAt: directory) {
      guard let session = SessionID(entry.name) else { continue }
      if try close(session) { unlink(directory + "/" + entry.name) }
    }
  }
}

/// The source of a collector's copies, while another process makes a batch of them: the files stay.
private final class KeptFiles: PictureSource {
  var folder: Directory? { nil }
  func read(_ file: FolderFile) -> SourceContent { .gone }
  func remove(_ files: [[FolderFile]]) -> [[FolderFile]] { files }
  func refined(_ pictures: [LoosePicture], before nextMs: Int64?) -> [LoosePicture] { pictures }
}
