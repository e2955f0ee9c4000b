/// Work that was stopped before its end. The batch stays in the queue.
package struct Cancelled: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .cancelled }
  package init() {}

  package var description: String { "stopped before its end" }
}

/// When work has to end before it is done: at a request to stop, at a deadline, or once another worker has taken its batch. Long work
/// asks often, and throws ``Cancelled``.
package struct Cancellation {
  private let isDue: () -> Bool

  package init(_ isDue: @escaping () -> Bool) { self.isDue = isDue }

  /// For work that runs to its end.
  package static var never: Cancellation { Cancellation { false } }

  package var isRequested: Bool { isDue() }

  /// - Throws: ``Cancelled`` if the work has to end.
  package func check() throws(Cancelled) {
    if isDue() { throw Cancelled() }
  }

  /// Returns a cancellation for the same reasons and one more.
  package func or(_ isDue: @escaping () -> Bool) -> Cancellation { Cancellation { self.isDue() || isDue() } }

  /// Returns a cancellation for the same reasons, and after some time from now on.
  package func or(afterMs: Int) -> Cancellation {
    let deadline = MonotonicClock.milliseconds() + afterMs
    return or { MonotonicClock.milliseconds() >= deadline }
  }
}
