// The sessions that a batch names. Nothing is decoded, and a batch that cannot be encoded may still name its session.

import FileSystem
import JSON

/// The sessions of a batch, as far as they can be told.
package struct NamedSessions: Sendable, Equatable {
  package let sessions: [SessionID]
  /// Whether the batch itself names them; else only its file name does.
  package let isCertain: Bool

  package init(_ sessions: [SessionID], isCertain: Bool) {
    self.sessions = sessions
    self.isCertain = isCertain
  }

  /// - Parameter name: a batch's name.
  package init(byNameOf name: String) {
    self.init(BatchReader.session(ofBatchNamed: name).map { [$0] } ?? [], isCertain: false)
  }

  /// Maximum number of files `batch.json` that are asked: a good batch has one.
  private static let maximumDescriptions = 16

  /// Returns the sessions that a batch names.
  ///
  /// - Parameters:
  ///   - path: a directory or a file.
  ///   - unpacker: unpacks archives in another process; nil to unpack trusted archives in this process.
  ///   - isCancelled: called before each part of an archive is read.
  /// - Throws: ``DiskError`` when reading fails; ``Cancelled``.
  package static func of(
    _ path: String, options: InputOptions = InputOptions(), limits: Limits = Limits(),
    unpacker: (any ArchiveUnpacker)?, isCancelled: @escaping () -> Bool
  ) throws -> NamedSessions {
    do {
      let opened = try OpenedBatch(reading: path, files: [], options, limits, unpacker, isCancelled)
      defer { opened.release(nil) }
      let described = try descriptions(in: opened.source.contents, limits)
      var read: [SessionID] = []
      do {
        if let batch = try BatchSessions(opened, limits: limits) {
          read = batch.readers.map(\.batch.session) + batch.refused.compactMap { SessionID($0.session) }
        }
      } catch is BadBatch {
        // Its description may still name a session.
      }
      let all = read + described.filter { !read.contains($0) }
      return all.isEmpty ? NamedSessions(byNameOf: path) : NamedSessions(all, isCertain: true)
    } catch is BadBatch {
      return NamedSessions(byNameOf: path)
    }
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
