/// Facts about batches that the user states, for recorders that do not write them. A batch that states a fact itself overrides it.
package struct InputOptions: Sendable, Equatable {
  /// The session of batches that name none; nil stands for the session that the batch's name tells.
  package var session: String?
  /// How the names of batches tell their sessions; nil stands for the name up to the first `@`. ``session`` overrides it.
  package var sessionFrom: SessionPattern?
  /// nil stands for the mode of the batch's format.
  package var capture: Batch.Capture?
  /// The nominal capture interval in milliseconds; nil stands for the median distance of the frames.
  package var intervalMs: Int64?
  /// Whether each batch ends its session.
  package var isFinal = false
  /// The source of capture times; nil stands for the names that recorders write.
  package var times: FrameTimes?
  /// The start of a file of several pictures that tells their durations, but no capture time; nil to refuse it.
  package var assumedStartMs: Int64?
  /// The zone of local times in names; nil if the user states none. No zone is guessed.
  package var timeZone: ZoneRules?
  /// Whether a form may take a batch of which it reads few names. Then the reader refuses a batch that loses most of its pictures, and a
  /// user may accept it.
  package var takesFew = false
  /// Milliseconds that are added to all instants of a batch: see ``Batch/clockOffsetMs``.
  package var clockOffsetMs: Int64 = 0
  /// The file that the call writes, without links. It is no picture of its own film.
  package var target: String?

  /// Whether the files' names tell no times, so that each may be that of a picture.
  var takesAnyName: Bool {
    switch times {
    case .modified?, .exif?, .numbers?: true
    case .names?, .list?, .durations?, nil: false
    }
  }

  package init(session: String? = nil) { self.session = session }
}
