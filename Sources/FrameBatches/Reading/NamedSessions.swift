// The sessions that a batch names. Nothing is decoded, and a batch that cannot be encoded may still name its session.

import FileSystem
import JSON

/// The sessions of a batch, as far as they can be told.
package struct NamedSessions: Sendable, Equatable {
  package let sessions: [SessionID]
  /// Whether the batch itself names them; else only its file name does.
  package let isCertain: Bool
  /// Whether the batch can be read, and nothing in it names a session: then the name says it for certain.
  package private(set) var isReadableWithoutSession = false
  /// Whether only the batch's name says its sessions, up to `@`: a pattern could read others in it.
  package private(set) var isByName = false
  /// Whether what can be read of a damaged batch says them. It may have others, too.
  package private(set) var isByRemains = false

  package init(_ sessions: [SessionID], isCertain: Bool) {
    self.sessions = sessions
    self.isCertain = isCertain
  }

  /// - Parameters:
  ///   - name: the name that the producer gave a batch, perhaps with folders before it.
  ///   - options: how names tell sessions.
  ///   - isReadable: whether the batch can be read, and nothing in it names a session.
  package init(byNameOf name: String, _ options: InputOptions, isReadable: Bool = false) {
    self.init(options.session(ofBatchNamed: name).map { [$0] } ?? [], isCertain: false)
    isReadableWithoutSession = isReadable
    isByName = options.sessionFrom == nil
  }

  /// Whether no other session can be in the batch.
  package var isComplete: Bool { isCertain || isReadableWithoutSession && !sessions.isEmpty }

  /// Maximum number of files `batch.json` that are asked: a good batch has one.
  private static let maximumDescriptions = 16

  /// Whether the content says them, so that a batch without its reason still does.
  package var isByContent: Bool { isCertain || isByRemains }

  /// Returns the sessions that a batch names: what can be read of a damaged one comes before its name.
  ///
  /// - Parameters:
  ///   - path: a directory or a file.
  ///   - name: the name that the producer gave the batch, perhaps with folders before it.
  ///   - unpacker: unpacks archives in another process; nil to unpack trusted archives in this process.
  ///   - cancellation: called before each part of an archive is read.
  /// - Throws: ``DiskError`` when reading fails; ``Cancelled``.
  package static func of(
    _ path: String, named name: String, options: InputOptions = InputOptions(), limits: Limits = Limits(),
    unpacker: (any ArchiveUnpacker)?, cancellation: Cancellation
  ) throws -> NamedSessions {
    for isTorn in [false, true] {
      do {
        let opened = try OpenedBatch(
          reading: path, named: name, files: [], options, limits, unpacker, takesTorn: isTorn, cancellation)
        defer { opened.release(nil) }
        return try of(opened, named: name, options, limits, isTorn: isTorn)
      } catch is BadBatch {
        // The members before the damage may tell.
      }
    }
    return NamedSessions(byNameOf: name, options)
  }

  private static func of(
    _ opened: OpenedBatch, named name: String, _ options: InputOptions, _ limits: Limits, isTorn: Bool
  ) throws -> NamedSessions {
    var read: [SessionID] = []
    var (isUnknown, isByName) = (false, false)
    do {
      if let batch = try BatchSessions(opened, limits: limits) {
        isByName = batch.readers.allSatisfy { reader in
          reader.batch.namesake.map { SessionName(of: $0, nil).text } == reader.batch.session.description
        }
        read = batch.readers.map(\.batch.session) + batch.refused.compactMap { SessionID($0.session) }
      } else {
        isUnknown = !isTorn
      }
    } catch is BadBatch {
      // Its description may still name a session.
    }
    let described = try descriptions(in: opened.source.contents, limits, withText: read.isEmpty)
    let all = read + described.sessions.filter { !read.contains($0) }
    guard !all.isEmpty, !isTorn || !isByName || !described.sessions.isEmpty else {
      return NamedSessions(byNameOf: name, options, isReadable: isUnknown && namesNone(opened.source.contents))
    }
    let isWhole = !isTorn && described.isWhole
    var found = NamedSessions(all, isCertain: isWhole)
    found.isByName = isByName && described.sessions.isEmpty
    found.isByRemains = !isWhole
    return found
  }

  /// Whether no file in a container that no format recognises can name a session. A text may be the torn one of a recorder.
  private static func namesNone(_ contents: any BatchContents) -> Bool {
    contents.stream == nil && contents.text == nil
      && !(contents.names + contents.refused.map(\.source)).contains(where: NativeFormat.isDescription)
  }

  /// The sessions in all files `batch.json`, also in places where a worker does not take them, and whether all of these are whole.
  ///
  /// - Parameter withText: whether to look into the beginning of a batch that is one JSON text, too.
  private static func descriptions(
    in contents: any BatchContents, _ limits: Limits, withText: Bool
  ) throws -> (sessions: [SessionID], isWhole: Bool) {
    var texts = try contents.names.filter(NativeFormat.isDescription).prefix(maximumDescriptions).compactMap { name in
      if case .bytes(let bytes)? = try contents.contents(of: name, limit: limits.jsonBytes) { bytes } else { nil }
    }
    if withText, let text = contents.text { texts.append(try text.bytes(0..<min(text.count, 1 << 20))) }
    var found: (sessions: [SessionID], isWhole: Bool) = ([], true)
    for text in texts {
      let whole = try? JSONParser.parse(text)
      let session = whole.map { $0.object?["session"]?.string } ?? TornJSON(text).member("session")
      guard let session = session.flatMap({ SessionID($0) }) else { continue }
      found.sessions.append(session)
      if whole == nil { found.isWhole = false }
    }
    return found
  }
}
