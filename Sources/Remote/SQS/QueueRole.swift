/// The use of a queue by a process.
package enum QueueRole: Sendable, Equatable {
  /// Adds names.
  case producer
  /// Works on batches.
  ///
  /// - Parameter drains: whether it ends when the queue is empty.
  case worker(drains: Bool)
}
