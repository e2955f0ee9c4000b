/// What a format found in a container, before it is put in order and checked.
struct BatchDraft {
  /// nil where the format does not say: the batch's name up to the first `@`.
  var session: String?
  var intervalMs: Int64?
  var endMs: Int64?
  var capture = Batch.Capture.interval
  var isFinal = false
  /// In the producer's order.
  var frames: [Frame] = []
  var refused: [RefusedFrame] = []
  /// Files that were understood and are no frames, or were spoken of under another name.
  var sideFiles: Set<String> = []
  /// What a person should know of it.
  var warnings: [String] = []
  var metadata = JSONValue.object([:])
}

/// A batch as it lies there: what it is called, which for most recorders says whose it is, and what is in it.
struct BatchSource {
  /// Without what tells that it is an archive: `.tar.gz` and the like.
  let name: String
  let contents: any BatchContents

  /// The name before its last `-`, behind which some recorders write a time.
  var nameBeforeDash: String? {
    name.lastIndex(of: "-").map { String(name[..<$0]) }.flatMap { $0.isEmpty ? nil : $0 }
  }
}

/// One producer's way of writing a batch. A new one is a file beside this one, and an entry in ``OpenBatch/formats``.
protocol BatchFormat {
  /// What people call it.
  static var name: String { get }

  /// - Returns: nil when the container holds something else.
  /// - Throws: ``BadBatch`` when it is this format, but broken as a whole.
  static func read(_ source: BatchSource, limits: Limits) throws -> BatchDraft?
}
