// The exports of a worker: files that it makes of each session that has ended, on a thread of their own. The request for the end stays until
// they are made: after a crash the next worker ends the session again, and makes what is missing.

import FileSystem
import FrameBatches
import JSON
import Logging
import Notifying
import Sessions
import Synchronization

package final class ExportPasses: Sendable {
  /// A file that is made of each session.
  package struct Order: Sendable {
    /// The name in `exports/` of the session.
    package let name: String
    /// Makes it of the session at a path, which may be a copy.
    package let make: @Sendable (_ session: String, _ target: String) throws -> Void

    package init(name: String, make: @escaping @Sendable (_ session: String, _ target: String) throws -> Void) {
      (self.name, self.make) = (name, make)
    }
  }

  private static let lookMs = 250
  /// The first and the longest pause after a failure of the environment, in milliseconds.
  private static let (pauseMs, longestPauseMs) = (5_000, 300_000)

  private struct Owed {
    let session: EndedSession
    let end: HeldEndRequest
    var failures = 0
    var dueMs = 0
  }

  private let orders: [Order]
  private let shutdown: ShutdownState
  private let state = Mutex((ended: [SessionID: EndedSession](), owed: [Owed]()))
  /// Held while a pass runs: the worker's thread makes one at its end.
  private let working = Mutex(())

  package init(_ orders: [Order], shutdown: ShutdownState) { (self.orders, self.shutdown) = (orders, shutdown) }

  /// Notes a session whose end is being announced.
  func note(_ session: EndedSession) { state.withLock { $0.ended[session.end.session] = session } }

  /// Adds a session whose end is announced.
  ///
  /// - Returns: false if it was not noted.
  func add(_ end: HeldEndRequest) -> Bool {
    state.withLock { state in
      guard let session = state.ended.removeValue(forKey: end.request.session) else { return false }
      state.owed.append(Owed(session: session, end: end))
      return true
    }
  }

  /// Whether files are to be made.
  var isOwing: Bool { state.withLock { !$0.owed.isEmpty } }

  /// Starts the thread.
  func start(_ worker: Worker) throws -> PeriodicThread {
    try PeriodicThread("exports", everyMs: Self.lookMs) { [self] in pass(worker) }
  }

  /// Makes the files of the sessions that are due.
  ///
  /// - Parameter all: whether to try those that failed, too, once.
  /// - Returns: the first failure of the environment.
  @discardableResult
  func pass(_ worker: Worker, all: Bool = false) -> (any Error)? {
    working.withLock { _ in
      var first: (any Error)?
      var rest = state.withLock { $0.owed.filter { all || $0.dueMs <= MonotonicClock.milliseconds() } }
      while let next = rest.popLast(), !shutdown.isStopping {
        let failure = perform(next, worker)
        first = first ?? failure
        state.withLock { state in
          state.owed.removeAll { $0.end.request.session == next.end.request.session }
          guard failure != nil else { return }
          var again = next
          again.failures += 1
          let pauseMs = BackOff.pauseMs(
            failures: again.failures, firstMs: Self.pauseMs, mostMs: Self.longestPauseMs)
          again.dueMs = MonotonicClock.milliseconds() + pauseMs
          state.owed.append(again)
        }
      }
      return first
    }
  }

  /// - Returns: a failure after which it is tried again.
  private func perform(_ owed: Owed, _ worker: Worker) -> (any Error)? {
    let session = owed.end.request.session
    let about: Logger.Metadata = ["session": "\(session)"]
    let cancellation = Cancellation { [shutdown] in shutdown.isStopping }
    do {
      let files = try worker.store.export(orders.map(\.name), of: session, cancellation: cancellation) {
        path, name, to in
        do {
          try orders.first { $0.name == name }?.make(path, to)
          return true
        } catch let error where Self.isOfSession(error) {
          // Another try would not help. It does not hold up the others.
          worker.logger.error(
            "export.failed", metadata: about.merging(["file": "\(name)", "error": "\(error)"]) { $1 })
          return false
        }
      }
      if let files { announce(files, of: owed.session, worker) }
    } catch is SessionDeleted {
      // Nobody wants them any more.
    } catch let error where Self.isOfSession(error) {
      worker.logger.error("export.failed", metadata: about.merging(["error": "\(error)"]) { $1 })
    } catch {
      guard !(error is Cancelled) else { return nil }
      worker.logger.error("export.failed", metadata: about.merging(["error": "\(error)"]) { $1 })
      return error
    }
    worker.complete(owed.end)
    return nil
  }

  /// Whether a file cannot be made because of the session.
  private static func isOfSession(_ error: any Error) -> Bool {
    [.input, .usage, .gone].contains((error as? any ClassifiedError)?.kind)
  }

  private func announce(_ files: [ExportedFile], of session: EndedSession, _ worker: Worker) {
    worker.logger.info(
      "session.exported",
      metadata: [
        "session": "\(session.end.session)", "files": "\(files.map(\.name).joined(separator: ", "))",
        "bytes": .stringConvertible(files.reduce(0) { $0 + $1.bytes }),
      ])
    let event = SessionEvent(exported: session, files)
    worker.write?(event)
    worker.notifier?.add(.notice, event)
  }
}
