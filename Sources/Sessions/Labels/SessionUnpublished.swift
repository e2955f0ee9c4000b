import FileSystem
import FrameBatches

/// Labels came for a session of which nothing is published, maybe not yet: their pictures may be on their way.
package struct SessionUnpublished: ClassifiedError {
  private let batch: String
  private let session: SessionID

  init(_ addition: LabelAddition) { (batch, session) = (addition.name, addition.session) }

  package var kind: Failure.Kind { .input }
  package var description: String { "nothing of session \(session) is published" }

  /// Why its batch goes to quarantine in the end.
  package var reason: BadBatch {
    BadBatch(
      "publish", batch, description,
      advice: "send labels with the pictures of their time, or later; `quarantine retry` takes this batch again")
  }
}
