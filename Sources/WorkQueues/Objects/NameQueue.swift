// The names of batches that are owed, and who works on them. The batches lie elsewhere: a lost queue costs time, and no batch.

/// A name that this worker has taken from a queue.
package struct QueuedName: Sendable, Equatable {
  /// The queue's ID of the entry.
  package let id: String
  package let name: String
  /// How often work on it has begun.
  package let attempt: Int
  /// The number of failures for unknown reasons.
  package let failures: Int

  package init(id: String, name: String, attempt: Int, failures: Int) {
    self.id = id
    self.name = name
    self.attempt = attempt
    self.failures = failures
  }
}

/// A queue of names, for several threads at once. Each step happens as a whole or not at all; what acts for the one who holds a
/// name does nothing when another worker holds it by now.
package protocol NameQueue: Sendable {
  /// Names that no worker has taken.
  func waitingCount() throws -> Int
  /// Names that other workers have taken.
  func heldElsewhereCount() throws -> Int
  /// Names that this worker has taken, as far as it knows.
  var heldCount: Int { get }
  /// Takes one; nil where there is none.
  func next() throws -> QueuedName?
  /// Takes over what others have not renewed for a lease. That work on it begins is not counted yet.
  func takeOver() throws -> [QueuedName]
  /// Counts that work begins; nil when another worker has it.
  func begin(_ name: QueuedName) throws -> QueuedName?
  /// Counts a failure; nil when another worker has it.
  func fail(_ name: QueuedName) throws -> QueuedName?
  /// Renews this one's lease now, before something is done that cannot be taken back; false when another worker has it.
  func renew(_ name: QueuedName) throws -> Bool
  /// Puts it back as if it had never been taken.
  func handBack(_ name: QueuedName) throws
  /// It is done with.
  func acknowledge(_ name: QueuedName) throws
  /// It is done with, and named with its reason, once, among those that could not be done.
  func deadLetter(_ name: QueuedName, reason: String) throws
  /// Adds names, each unless it is there.
  ///
  /// - Returns: how many were not.
  func add(_ names: [String]) throws -> Int
  /// Whether it is still ours, as far as one knows, by its id.
  func holds(_ id: String) -> Bool
  /// Whether the queue has lost what it knew since it was joined: that nothing waits then does not say that nothing is owed.
  var lostState: Bool { get }
  /// Leaves the queue; nothing is taken any more.
  func leave()
}
