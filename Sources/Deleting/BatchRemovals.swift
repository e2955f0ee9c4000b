import FileSystem
import FrameBatches
import Sessions

/// The result of one or more steps of a removal of batches.
package struct BatchRemovals {
  /// The removed batches, their sessions and their files.
  private(set) var removed: [(name: String, sessions: NamedSessions, files: FileCount)] = []
  private(set) var remains = RemainingBatches()
  /// Failures that stopped no other step.
  private(set) var failures: [any Error] = []
  /// The error that stopped the steps.
  private(set) var stop: (any Error)?

  init() {}

  /// A removed batch.
  init(removed name: String, _ sessions: NamedSessions, _ files: FileCount) { removed = [(name, sessions, files)] }

  /// Batches that workers hold.
  init(held: [String]) { remains.held = held }

  /// A batch that stays and may have pictures of a deleted session, with a remark for people.
  init(unidentified path: String, _ remark: String, _ failure: (any Error)? = nil) {
    remains.add(unidentified: path, remark)
    failures = failure.map { [$0] } ?? []
  }

  /// A batch that stays because it cannot be read. Its name tells the sessions that are found.
  init(unreadable path: String, _ found: NamedSessions) { remains.add(unreadable: path, found) }

  /// A batch of another session that stays, and whose name has the ID of a deleted session in it.
  init(alike path: String, _ session: SessionID) { remains.add(alike: path, session) }

  init(failures: [any Error]) { self.failures = failures }

  static func += (all: inout BatchRemovals, next: BatchRemovals) {
    all.removed += next.removed
    all.remains.add(next.remains)
    all.failures += next.failures
    all.stop = all.stop ?? next.stop
  }

  /// Takes a step for each element, and returns all results. An error of a step stops no other step, unless it is a request to stop.
  ///
  /// - Parameter stopsAtFailure: whether every error stops the steps.
  static func of<Elements: Sequence>(
    _ elements: Elements, stopsAtFailure: Bool = false, _ step: (Elements.Element) throws -> BatchRemovals
  ) -> BatchRemovals {
    var all = BatchRemovals()
    for element in elements {
      do {
        var next = try step(element)
        // The steps inside were stopped by a failure that does not stop these.
        if let stop = next.stop, !stopsAtFailure, !(stop is Cancelled) {
          next.failures.append(stop)
          next.stop = nil
        }
        all += next
      } catch let failure where stopsAtFailure || failure is Cancelled {
        all.stop = failure
      } catch {
        all.failures.append(error)
      }
      if all.stop != nil { break }
    }
    return all
  }
}

/// The sessions of a batch, or why it stays.
enum BatchFinding {
  case found(NamedSessions)
  case stays(BatchRemovals)
}
