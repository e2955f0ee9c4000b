// The way of a batch to workers that have no directory in common with its sender.

import FileSystem
import FrameBatches

/// A place that takes batches as tars: a store and its queue, or the `--ingest` of a worker.
package protocol BatchReceiver: Sendable {
  /// Takes a batch; it is durable when this returns. The call may be repeated.
  ///
  /// - Returns: false if another batch has the name.
  /// - Throws: ``RefusedBatch``; after any other error the call may be repeated.
  func take(_ tar: [UInt8], as name: String) throws -> Bool
}

/// A receiver never takes a batch, however often it is sent.
package struct RefusedBatch: ClassifiedError {
  package var kind: Failure.Kind { .input }
  package let name: String
  package let cause: String
  package let advice: String

  package init(name: String, cause: String, advice: String) {
    (self.name, self.cause, self.advice) = (name, cause, advice)
  }

  package var description: String { "\(name): \(cause); \(advice)" }
}

/// A receiver cannot take a batch now.
package protocol BusyReceiver: ClassifiedError {
  /// The seconds after which it asks for the next try; nil if it names none.
  var retryAfterS: Int? { get }
}

extension BatchReceiver {
  /// Sends frames as one batch, or as several if they are more than the limits of one.
  ///
  /// - Parameters:
  ///   - paths: image files, or one directory with them and perhaps a `batch.json`.
  ///   - options: facts that the files do not state; the batch states them in its `batch.json`.
  ///   - shown: called with the name of each batch that the receiver has.
  package func enqueue(
    _ paths: [String], _ options: InputOptions, limits: Limits = Limits(), shown: (String) -> Void
  ) throws {
    for batch in try EnqueuedBatch.all(of: paths, options, limits, isArchived: true) {
      let tar = try batch.tar(limits)
      var name = "\(batch.name).tar"
      var number = 1
      while try !take(tar, as: name) {
        number += 1
        name = "\(batch.name).\(number).tar"
      }
      shown(name)
    }
  }
}

extension EnqueuedBatch {
  /// The archive of the batch: the same for the same files.
  fileprivate func tar(_ limits: Limits) throws -> [UInt8] {
    let own = description.map { [(NativeFormat.description, $0)] } ?? []
    return try Archive.tar(
      try (files.map { (lastComponent(of: $0), try Enqueuer.bytes(of: $0, limits)) } + own).sorted { $0.0 < $1.0 })
  }
}
