// Failures and their kinds. One table has the consequences of a kind for a batch, a process and a client.

/// An error that says of which kind it is. Every error that leaves its module is one; `scripts/architecture` checks it.
package protocol ClassifiedError: Error, CustomStringConvertible {
  var kind: Failure.Kind { get }
}

/// Why something was not done, and what to do about it. Errors that are told apart by more than their kind have types of their own.
package struct Failure: ClassifiedError, Equatable {
  package enum Kind: Sendable, CaseIterable {
    /// An input cannot be used as it is: a batch, a file, a published session.
    case input
    /// The command, a setting or an address is wrong.
    case usage
    /// A disk, a service, the network or the memory failed; or another process is in the way.
    case environment
    /// The named thing is not there, or not any more.
    case gone
    /// A stop was requested, or nobody waits for the result.
    case cancelled
  }

  package let kind: Kind
  /// The action as a verb, such as `listen at`; empty where the cause says it.
  package let operation: String
  /// The object of the action: a file, a batch, an address; empty for none.
  package let subject: String
  package let cause: String
  /// The next step for a person; empty for none.
  package let advice: String

  package init(_ kind: Kind, _ operation: String, _ subject: String, _ cause: String, advice: String = "") {
    self.kind = kind
    self.operation = operation
    self.subject = subject
    self.cause = cause
    self.advice = advice
  }

  /// - Parameter cause: names the action, too.
  package init(_ kind: Kind, _ cause: String, advice: String = "") {
    self.init(kind, "", "", cause, advice: advice)
  }

  package var description: String {
    let tried = [operation, subject].filter { !$0.isEmpty }.joined(separator: " ")
    return [tried, cause].filter { !$0.isEmpty }.joined(separator: ": ") + (advice.isEmpty ? "" : "; \(advice)")
  }
}

extension Failure.Kind {
  /// The consequences of a failure.
  package struct Consequence: Equatable, Sendable {
    /// After sysexits.h. A failed disk has a status of its own.
    package let exitStatus: Int32
    /// Of an answer to a client.
    package let httpStatus: Int
    /// Whether the same may succeed later, without a change by a person.
    package let isTransient: Bool
  }

  package var consequence: Consequence {
    switch self {
    case .input: Consequence(exitStatus: 65, httpStatus: 422, isTransient: false)
    case .usage: Consequence(exitStatus: 64, httpStatus: 400, isTransient: false)
    case .environment: Consequence(exitStatus: 75, httpStatus: 503, isTransient: true)
    case .gone: Consequence(exitStatus: 65, httpStatus: 404, isTransient: false)
    // The number that nginx logs; nobody reads the answer.
    case .cancelled: Consequence(exitStatus: 75, httpStatus: 499, isTransient: true)
    }
  }
}

extension Error {
  /// The consequences of the error. An error without a kind is a fault of the program: run it again.
  package var consequence: Failure.Kind.Consequence {
    ((self as? any ClassifiedError)?.kind ?? .environment).consequence
  }
}
