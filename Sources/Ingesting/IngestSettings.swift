import FileSystem
import FrameBatches

/// The limits of all that is taken, and the options that batches are read with.
package struct IngestSettings: Sendable {
  /// Facts that batches may not state, as for the worker.
  package var input = InputOptions()
  /// Those of the worker.
  package var limits = Limits()
  /// The free space that bodies leave on their disk, beside ``smallestFree``.
  package var freeSpace = FreeSpace()
  /// Batches that may wait for a worker.
  package var backlog = 10_000
  /// Milliseconds after which captures are older than what is kept; nil if all is kept.
  package var retainMs: Int64?
  /// Bodies at once; further ones are refused. The server closes slow ones before there are so many.
  package var bodies = 384

  package init() {}

  /// The least room, for small files of the worker itself.
  static let smallestFree = 64 << 20
  /// Bytes of a body: no batch is larger.
  var bodyBytes: Int { limits.unpackedBytes }
  /// Bytes of a name: the worker adds its own endings.
  static let nameBytes = 200
  /// Bytes of an `Idempotency-Key`.
  static let keyBytes = 200
}
