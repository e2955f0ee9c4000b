import JSON

/// The frames of one session that a format found in a container, before they are sorted and checked.
package struct BatchDraft {
  /// The session that the recorder names; nil if it names none: see ``InputOptions/session``.
  package var session: String?
  /// The page, monitor or canvas that the session shows, in a format that may have several: the session is `<session>.<key>`.
  package var key: String?
  package var intervalMs: Int64?
  package var endMs: Int64?
  /// nil if the recorder does not say.
  package var capture: Batch.Capture?
  /// The capture mode of this kind of recorder, unless the batch or the user says otherwise.
  package var defaultCapture = Batch.Capture.interval
  /// nil if the recorder does not say.
  package var isFinal: Bool?
  /// In the producer's order.
  package var frames: [Frame] = []
  package var refused: [RefusedFrame] = []
  /// Files that were understood and are no frames, or were spoken of under another name.
  var sideFiles: Set<String> = []
  /// Warnings for people.
  package var warnings: [String] = []
  package var metadata = JSONValue.object([:])
}

/// A batch as it lies there: what it is called, which for most recorders says whose it is, and what is in it.
package struct BatchSource {
  /// Without what tells that it is an archive: `.tar.gz` and the like.
  package let name: String
  package let contents: any BatchContents
  /// The session of a recording that names none; nil if the batch has no name.
  package var session: String?
  package var options = InputOptions()

  /// The name before its last `-`, behind which some recorders write a time.
  var nameBeforeDash: String? {
    name.lastIndex(of: "-").map { String(name[..<$0]) }.flatMap { $0.isEmpty ? nil : $0 }
  }
}

/// One producer's way of writing a batch. A new one is a file beside this one, and an entry in ``BatchSessions/formats``.
package protocol BatchFormat {
  /// The format's name for people.
  static var name: String { get }

  /// Reads the sessions of a batch; most formats have one.
  ///
  /// - Returns: nil when the container holds something else.
  /// - Throws: ``BadBatch`` when it is this format, but broken as a whole.
  static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]?
}
