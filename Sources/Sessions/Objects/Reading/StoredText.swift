// The words in the pictures of a stored session: read from a copy of what has none yet, and written beside its segments.

import Encoding
import FileSystem
import FrameBatches
import Glibc

extension StoredSessions {
  /// Reads the words in a session's pictures, and writes their objects. Each is written when its segment is read, so an error leaves
  /// those before it.
  ///
  /// - Parameters:
  ///   - fromMs: earlier segments are left out, in unix milliseconds.
  ///   - output: an existing private directory, for copies of this session only.
  ///   - copying: called with the number of copied objects and of all; an error that it throws ends the work.
  ///   - progress: called with the number of segments done and of all; an error that it throws ends the work.
  /// - Throws: ``BadSession`` for a session that is unknown or deleted, or whose index is damaged; an error of the store; ``Failure``,
  ///   ``DiskError``, ``Cancelled``.
  package func readText(
    of id: SessionID, _ engine: TextEngine, _ choice: SessionText.Choice, fromMs: Int64 = 0, in output: String,
    decoders: DecoderForkServer?, cancellation: Cancellation, copying: (Int, Int) throws -> Void,
    progress: (Int, Int) throws -> Void
  ) throws -> SessionTextReport {
    let part = fromMs > 0 ? StoredPart.between(.unixMs(fromMs), nil) : .whole
    let copy = try StoredSession(id, of: self, in: output, part: part, damage: .kept, progress: copying)
    do {
      var texts = StoredTexts(copy, decoders)
      try copy.fetchVideos(of: texts.prepare(choice, fromMs: fromMs, copying), progress: copying)
      return try SessionText(engine, of: texts.directory, cancellation: cancellation).write(.missing) { done, total in
        try texts.upload(first: done)
        try progress(done, total)
      }
    } catch {
      throw copy.renamed(error)
    }
  }
}

extension ObjectStore {
  /// Reads the last segments of a session, and all from the first new one on: a list of all objects would cost more with each batch.
  package func readText(
    of id: SessionID, fromMs: Int64, _ engine: TextEngine, decoders: DecoderForkServer?, cancellation: Cancellation,
    progress: (Int, Int) throws -> Void
  ) throws -> SessionTextReport {
    guard let published = try session(id).published() else { return SessionTextReport(session: id.description) }
    let scratch = Staging.Scratch(in: staging)
    defer { scratch.remove() }
    try scratch.make()
    return try StoredSessions(objects, name: name).readText(
      of: id, engine, .missing, fromMs: min(fromMs, published.index.entries[0].startMs), in: scratch.path,
      decoders: decoders, cancellation: cancellation, copying: { _, _ in try cancellation.check() }, progress: progress)
  }

  package func textArguments(of session: String) -> String { "\(session) --store \(name)" }
}

/// The files of words of a copy.
private struct StoredTexts {
  let directory: SessionDirectory
  private let copy: StoredSession
  private let session: ObjectSession
  /// The segments whose words are to be read, in order. They have no file until then.
  private var wanted: [Int64] = []
  /// Those of the copied manifests, in order.
  private var starts: [Int64] = []

  init(_ copy: StoredSession, _ decoders: DecoderForkServer?) {
    (self.copy, session) = (copy, copy.index.session)
    directory = SessionDirectory(
      output: DurableFile.parentDirectory(of: copy.path), session: copy.index.session.id, decoders: decoders)
  }

  /// Gives a file to each segment that is not read: an empty one, unless the next segment needs its words.
  ///
  /// - Returns: the segments whose videos are needed: those that are read, and each one before these, whose last picture may go on.
  mutating func prepare(
    _ choice: SessionText.Choice, fromMs: Int64, _ progress: (Int, Int) throws -> Void
  ) throws -> Set<Int64> {
    let starts = copy.entries.map(\.startMs)
    let present = try choice == .all ? [] : presentStarts(fromMs: fromMs)
    var wanted = Set(starts.filter { $0 >= fromMs && !present.contains($0) })
    // Words go on from one segment to the next.
    let before = zip(starts, starts.dropFirst()).filter { !wanted.contains($0) && wanted.contains($1) }.map(\.0)
    let read = choice == .invalid ? starts.filter { !wanted.contains($0) } : before
    let texts = try ParallelFetch.map(
      read, { [session] in try Self.text(of: $0, in: session) }, progress: { try progress($0, read.count) })
    for (startMs, bytes) in zip(read, texts) {
      if let bytes { try copy.write(SegmentName.text(startMs), bytes) }
      let segment = try? directory.soundManifest(startMs).segment
      let isSound = try segment.map { try directory.text(of: $0) != nil } ?? false
      guard !isSound else { continue }
      unlink(copy.path + "/" + SegmentName.text(startMs))
      wanted.insert(startMs)
    }
    for startMs in starts where !wanted.contains(startMs) && !read.contains(startMs) {
      try copy.write(SegmentName.text(startMs), [])
    }
    (self.wanted, self.starts) = (wanted.sorted(), try directory.publishedStarts())
    return wanted.union(before)
  }

  /// - Returns: nil if there is no object, or none of a size that files of words have.
  private static func text(of startMs: Int64, in session: ObjectSession) throws -> [UInt8]? {
    do {
      return try session.objects.get(session.key(SegmentName.text(startMs)), limit: SegmentText.maximumBytes)?.bytes
    } catch is ObjectTooLarge {
      return nil
    }
  }

  /// Returns the starts of the segments with words in the store, those of a part.
  private func presentStarts(fromMs: Int64) throws -> Set<Int64> {
    try session.starts(SegmentName.start(ofText:), fromMs: fromMs, segments: copy.index.published.index.count)
  }

  /// Writes the words of the first segments that were not written before.
  ///
  /// - Throws: ``SessionDeleted``. Nothing that was written stays then.
  mutating func upload(first count: Int) throws {
    let done = wanted.prefix { count >= starts.count || $0 < starts[count] }
    for startMs in done {
      let name = SegmentName.text(startMs)
      // A damaged segment has no words.
      guard let bytes = try directory.bytes(of: name, limit: SegmentText.maximumBytes) else { continue }
      try session.removingObjectsIfDeleted {
        _ = try session.objects.put(session.key(name), .bytes(bytes), .json, when: .always)
        if let deleted = try session.tombstone() { throw SessionDeleted(deleted) }
      }
    }
    wanted.removeFirst(done.count)
  }
}
