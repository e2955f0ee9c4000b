import FileSystem
import FrameBatches

/// The update of a session's views failed. Its segments are published.
public struct ViewUpdateFailure: Error, CustomStringConvertible {
  /// The work that failed.
  package enum Work {
    /// The update of views that this process deferred, or of a batch that it published.
    case ownViews
    /// The update of views that a dead process left behind. The next worker of the session updates them.
    case abandonedViews
    /// The removal of superseded files, which any later worker repeats. The views are up to date.
    case removal
  }

  /// The session whose views are not up to date.
  public let session: SessionID
  /// The error of the update.
  public let error: any Error
  package let work: Work

  package init(_ session: SessionID, _ work: Work, _ error: any Error) {
    self.session = session
    self.work = work
    self.error = error
  }

  /// Whether this process deferred the update; else a dead process did, and the next worker of the session updates them.
  public var isOurs: Bool { work == .ownViews }

  /// Whether a run that ends with this failure has failed. A stop is no failure. Another process that holds the session, or has won
  /// the race of conditional writes, updates the views that it left behind.
  package var failsRun: Bool {
    switch error {
    case is Cancelled, is SegmentWriteConflict: false
    case is SessionHeld: work == .ownViews
    default: work != .removal
    }
  }

  /// The description of ``error``.
  public var description: String { "\(error)" }
}

extension ViewUpdateFailure: ClassifiedError {
  package var kind: Failure.Kind { (error as? any ClassifiedError)?.kind ?? .environment }
}
