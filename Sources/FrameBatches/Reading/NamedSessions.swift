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

  /// Returns the sessions that a batch names.
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
    do {
      let opened = try OpenedBatch(reading: path, named: name, files: [], options, limits, unpacker, cancellation)
      defer { opened.release(nil) }
      let described = try descriptions(in: opened.source.contents, limits)
      var read: [SessionID] = []
      var (isUnknown, isByName) = (false, false)
      do {
        if let batch = try BatchSessions(opened, limits: limits) {
          isByName = batch.readers.allSatisfy { reader in
            reader.batch.namesake.map { SessionName(of: $0, nil).text } == reader.batch.session.description
          }
          read = batch.readers.map(\.batch.session) + batch.refused.compactMap { SessionID($0.session) }
        } else {
          isUnknown = true
        }
      } catch is BadBatch {
        // Its description may still name a session.
      }
      let all = read + described.filter { !read.contains($0) }
      guard all.isEmpty else {
        var found = NamedSessions(all, isCertain: true)
        found.isByName = isByName && described.isEmpty
        return found
      }
      return NamedSessions(byNameOf: name, options, isReadable: isUnknown && namesNone(opened.source.contents))
    } catch is BadBatch {
      return NamedSessions(byNameOf: name, options)
    }
  }

  /// Whether no file in a container that no format recognises can name a session. A text may be the torn one of a recorder.
  private static func namesNone(_ contents: any BatchContents) -> Bool {
    contents.stream == nil && contents.text == nil
      && !(contents.names + contents.refused.map(\.source)).contains(where: NativeFormat.isDescription)
  }

  /// The sessions in all files `batch.json`, also in places where a worker does not take them.
  private static func descriptions(in contents: any BatchContents, _ limits: Limits) throws -> [SessionID] {
    let names = contents.names.filter(NativeFormat.isDescription).prefix(maximumDescriptions)
    return try names.compactMap { name in
      guard case .bytes(let bytes)? = try contents.contents(of: name, limit: limits.jsonBytes),
        let session = try? JSONParser.parse(bytes).object?["session"]?.string
      else { return nil }
      return SessionID(session)
    }
  }
}
