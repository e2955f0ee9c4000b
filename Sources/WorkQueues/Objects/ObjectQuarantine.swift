import FileSystem
import FrameBatches
import JSON
import Sessions

/// Batches that cannot be encoded, with their reasons: those of a spool or of an object store, for operators.
package protocol BatchQuarantine {
  /// All batches, by name.
  func batches() throws -> [Quarantine.Batch]
  /// - Throws: ``Failure`` if there is no such batch.
  func batch(_ name: String) throws -> Quarantine.Batch
  /// Removes a batch and its reason.
  func purge(_ batch: Quarantine.Batch) throws
  /// Returns the path of a batch, or of its copy in a directory.
  ///
  /// - Parameters:
  ///   - directory: an empty private one.
  ///   - limit: the maximum size of a copy, in bytes.
  /// - Throws: ``Failure`` for a larger one.
  func localPath(of batch: Quarantine.Batch, in directory: String, limit: Int) throws -> String
}

extension Quarantine: BatchQuarantine {
  package func purge(_ batch: Batch) throws { try purge(batch, reasonFirst: false) }

  package func localPath(of batch: Batch, in directory: String, limit: Int) -> String { batch.path }
}

/// `quarantine/` of an object store. May be used beside workers.
package struct ObjectQuarantine: BatchQuarantine {
  static let prefix = "quarantine/"
  /// Maximum number of batches that are listed: a store may list without an end.
  private static let maximumCount = 100_000

  private let objects: any ObjectClient
  /// The store's name in messages.
  private let name: String

  init(_ objects: any ObjectClient, name: String) { (self.objects, self.name) = (objects, name) }

  /// Whether a key names a batch, by its part behind the prefix.
  static func isBatch(_ name: some StringProtocol) -> Bool {
    !name.isEmpty && !name.hasSuffix(Quarantine.reasonEnding) && !name.hasSuffix("/")
  }

  static func key(of name: String) -> String { prefix + name }
  static func reasonKey(of name: String) -> String { prefix + name + Quarantine.reasonEnding }

  /// The names of the batches, in order.
  package func names() throws -> [String] {
    var (last, names): (String?, [String]) = (nil, [])
    while true {
      let page = try objects.list(Self.prefix, after: last)
      guard let end = page.last else { return names }
      last = end.key
      names += page.map { String($0.key.dropFirst(Self.prefix.count)) }.filter { Self.isBatch($0) }
      guard names.count <= Self.maximumCount else {
        throw Failure(
          .environment, "list", name + Self.prefix, "more than \(Self.maximumCount) batches", advice: "name batches")
      }
    }
  }

  package func batches() throws -> [Quarantine.Batch] {
    try ParallelFetch.map(names(), { try self.described($0) }, progress: { _ in })
  }

  package func batch(_ name: String) throws -> Quarantine.Batch {
    guard ObjectBatchRepository.isPlain(name), Self.isBatch(name), try objects.head(Self.key(of: name)) != nil else {
      throw Failure.noBatch(name, in: self.name + Self.prefix)
    }
    return try described(name)
  }

  /// The reason goes first: after a crash the batch is still in the list.
  package func purge(_ batch: Quarantine.Batch) throws {
    for key in [Self.reasonKey(of: batch.name), Self.key(of: batch.name)] { try objects.delete(key, nil) }
  }

  package func localPath(of batch: Quarantine.Batch, in directory: String, limit: Int) throws -> String {
    let path = directory + "/" + lastComponent(of: batch.name)
    do {
      guard try objects.download(Self.key(of: batch.name), to: path, limit: limit) != nil else {
        throw Failure.noBatch(batch.name, in: name + Self.prefix)
      }
    } catch is ObjectTooLarge {
      throw Failure(
        .input, "copy", batch.path, "more than the limit of \(limit) bytes", advice: "raise --limit file-bytes")
    }
    return path
  }

  private func described(_ name: String) throws -> Quarantine.Batch {
    Quarantine.Batch(name: name, path: self.name + Self.key(of: name), reason: try reason(of: name))
  }

  /// - Returns: nil if there is no reason beside the batch, or another object of that name.
  private func reason(of name: String) throws -> [String: JSONValue]? {
    do {
      return try objects.get(Self.reasonKey(of: name), limit: 1 << 20).flatMap { BadBatch.reason(in: $0.bytes) }
    } catch is ObjectTooLarge {
      return nil
    }
  }
}
