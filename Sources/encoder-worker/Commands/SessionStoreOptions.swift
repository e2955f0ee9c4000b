import ArgumentParser
import FileSystem
import FrameBatches
import Remote
import SegmentEncoder
import Sessions

/// The object store of the sessions that a command reads, instead of directories.
struct SessionStoreOptions: ParsableArguments {
  @Option(
    help: .setting(RemoteOptions.storeHelp, valueName: "url", example: "s3://bucket", place: .store),
    transform: S3Location.init(_:))
  var store: S3Location?

  @OptionGroup var access: StoreAccess

  func validate() throws {
    if store == nil { try CallOptions.refuse("--unsigned", "--store-header", without: "--store") }
  }

  /// Returns the session of the store that an argument names; nil for a path. A store of a file or of the environment does not count
  /// for a path that is there.
  ///
  /// - Throws: wrong usage if a call with `--store` names no session.
  func session(_ argument: String) throws -> SessionID? {
    guard store != nil else { return nil }
    let id = SessionID(argument)
    guard CallOptions.has("--store") else { return DurableFile.exists(argument) ? nil : id }
    guard let id else {
      throw ValidationError("'\(argument)' is no session's id, which --store needs; \(SessionID.rule)")
    }
    return id
  }

  /// Calls `body` with a copy of a session in a private directory, which is removed at the end. Start decoders first: this starts threads.
  func withCopy<R>(of id: SessionID, _ needs: StoredNeeds, _ body: (_ path: String) throws -> R) throws -> R {
    let stop = SignalledStop(try TerminationSignals())
    let sessions = try sessions(stop)
    return try Self.withScratch { scratch in
      var progress = Progress()
      defer { progress.finish() }
      let advance = { (done: Int, total: Int) throws in
        progress.show(done, of: total, "objects")
        try stop.check()
      }
      let copy = try StoredSession(
        id, of: sessions, in: scratch, part: needs.part, damage: needs.keepsDamage ? .kept : .refused, progress: advance
      )
      do {
        if case .whole = needs.part { try copy.writeIndex() }
        try copy.fetchVideos(of: needs.videos(copy.path), progress: advance)
        progress.finish()
        return try body(copy.path)
      } catch {
        throw copy.renamed(error)
      }
    }
  }

  /// - Parameter stop: ends requests, too; nil for a process that does not wait for them at its end.
  func sessions(_ stop: SignalledStop? = nil) throws -> StoredSessions {
    let (objects, name) = try objects(isOverdue: { stop?.isRequested ?? false })
    return StoredSessions(objects, name: name)
  }

  /// Returns the objects of the store, and its name in messages.
  ///
  /// - Parameter isOverdue: whether requests have to end.
  func objects(isOverdue: @escaping @Sendable () -> Bool) throws -> (any ObjectClient, name: String) {
    guard let store else { throw MissingOption.error("--store <url>", RemoteOptions.storeHelp) }
    return (try S3Client(store, access.settings(), isOverdue: isOverdue), "\(store)")
  }

  /// Calls `body` with an empty private directory, which is removed at the end.
  static func withScratch<R>(_ body: (_ path: String) throws -> R) throws -> R {
    // The next command removes what a killed one has left.
    let temporary = try Staging.temporary(for: WorkerID())
    defer { temporary.remove() }
    let scratch = Staging.Scratch(in: temporary)
    defer { scratch.remove() }
    try scratch.make()
    return try body(scratch.path)
  }
}

/// The objects of a stored session that a command reads.
struct StoredNeeds {
  var part = StoredPart.whole
  /// Whether the command reports damaged objects itself.
  var keepsDamage = false
  /// Returns the starts of the segments whose videos it reads, once their manifests are there; nil for all.
  var videos: (_ path: String) throws -> Set<Int64>? = { _ in nil }
}
