// A batch without pictures: a `batch.json` with labels only.

extension LabelAddition {
  /// Whether a draft is a batch without pictures, which has labels and nothing else.
  static func isLabels(_ draft: BatchDraft, as format: any BatchFormat.Type) -> Bool {
    format == NativeFormat.self && draft.frames.isEmpty && draft.videos == nil && draft.refused.isEmpty
      && draft.pointers.isEmpty && draft.pages.isEmpty && draft.isFinal != true && !draft.labels.isEmpty
  }

  /// - Throws: ``BadBatch`` if it names no session.
  init(_ draft: BatchDraft, of source: BatchSource, name: String, limits: Limits) throws(BadBatch) {
    guard let session = (draft.session ?? source.session).flatMap(SessionID.init) else {
      throw BadBatch("read", name, "labels without pictures, and no session", advice: "name it in batch.json")
    }
    self.init(draft.labels, to: session, name: name, limits: limits)
  }
}
