import FrameBatches

/// A queue of the names of batches in an object store, for several threads at once. A lost queue costs time, no batch.
///
/// Each call takes effect as a whole or not at all. A call for a claim that another worker holds by now does nothing.
package protocol NameQueue: Sendable {
  /// The number of names that no worker has claimed.
  func waitingCount() throws -> Int
  /// The number of claims that are worth a try now. A queue whose counts lag may have more names, or fewer.
  func claimableCount() throws -> Int
  /// The number of names that other workers have claimed.
  func heldElsewhereCount() throws -> Int
  /// The number of names that this worker has claimed, as far as it knows.
  var heldCount: Int { get }
  /// Claims the next name; returns nil if none waits.
  func next() throws -> Claim?
  /// Takes over claims with an expired lease. ``begin(_:)`` counts the attempt.
  func takeOver() throws -> [Claim]
  /// Counts an attempt; returns nil when another worker has the claim.
  func begin(_ claim: Claim) throws -> Claim?
  /// Counts a failure; returns nil when another worker has the claim.
  func fail(_ claim: Claim) throws -> Claim?
  /// Renews the claim's lease now, before an irreversible step; returns false when another worker has the claim.
  func renew(_ claim: Claim) throws -> Bool
  /// Sets the attempts of a claim to one; returns nil when another worker has it.
  func forgive(_ claim: Claim) throws -> Claim?
  /// Puts the name back as if this worker had never claimed it.
  func handBack(_ claim: Claim) throws
  /// Removes the name.
  func acknowledge(_ claim: Claim) throws
  /// Removes the name, and adds it once to the dead letters, with the reason.
  func deadLetter(_ claim: Claim, reason: String) throws
  /// Adds names, and leaves out those that are in the queue if it ``recognisesNames``.
  ///
  /// - Parameter traceParent: the step of the trace that their claims tell: ``Claim/traceParent``.
  /// - Returns: the number of names added.
  /// - Throws: ``Failure``.
  func add(_ names: [String], traceParent: TraceParent?) throws -> Int
  /// Whether the queue knows which names are in it. Another one may have a name twice: each claim of it is then worked on.
  var recognisesNames: Bool { get }
  /// Whether this worker has the claim with this ID, as far as it knows.
  func holds(_ id: String) -> Bool
  /// Whether the queue has lost its data since this worker joined: batches may wait that an empty queue does not name.
  var lostState: Bool { get }
  /// Leaves the queue. Nothing may be claimed afterwards.
  func leave()
}

extension NameQueue {
  package func claimableCount() throws -> Int { try waitingCount() }
  package var recognisesNames: Bool { true }
  package func add(_ names: [String]) throws -> Int { try add(names, traceParent: nil) }
}

/// A queue of names that also has a stream of events, for programs that wait for finished batches.
package protocol EventStream: NameQueue {
  /// Adds an event of a claim's batch; returns false when another worker has the claim.
  func announce(_ claim: Claim, key: String, event: String) throws -> Bool
  /// Adds an event.
  func announce(key: String, event: String) throws
}
