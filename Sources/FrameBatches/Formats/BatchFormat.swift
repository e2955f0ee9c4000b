import FileSystem
import JSON

/// The frames of one session that a format found in a container, before they are sorted and checked.
package struct BatchDraft {
  /// The session that the recorder names; nil if it names none: see ``InputOptions/session``.
  package var session: String?
  /// The page, monitor or canvas that the session shows, in a format that may have several: the session is `<session>.<key>`.
  package var key: String?
  /// The nominal capture interval in milliseconds; nil if the recorder does not state it.
  package var intervalMs: Int64?
  /// The end of the last frame's hold in unix milliseconds; nil if the recorder does not state it.
  package var endMs: Int64?
  /// See ``Batch/isEndOpen``.
  package var isEndOpen = false
  /// See ``Batch/clockOffsetMs``.
  package var clockOffsetMs: Int64 = 0
  /// The capture mode; nil if the recorder does not state it.
  package var capture: Batch.Capture?
  /// The capture mode of this kind of recorder. ``capture`` and ``InputOptions/capture`` override it.
  package var defaultCapture = Batch.Capture.interval
  /// Whether the session ends with this batch; nil if the recorder does not state it.
  package var isFinal: Bool?
  /// Whether some of the frames may be published already: see ``Batch/folder``.
  package var grows = false
  /// In the producer's order.
  package var frames: [Frame] = []
  /// Whether that order is the order of the captures: in a list, in records, or by numbers in names.
  package var isListed = false
  /// The remedy for several files at one instant; nil if the format has none of its own.
  var adviceOnEqualInstants: String?
  package var refused: [RefusedFrame] = []
  /// Names of files that the format has used and that are not frames, or that ``frames`` or ``refused`` list under another name.
  var sideFiles: Set<String> = []
  /// Warnings for the operator.
  package var warnings: [String] = []
  package var metadata = JSONValue.object([:])
  /// The name of the zone that the producer states; nil if it states none, or one that this system does not know.
  package var timeZone: String?
  /// The step of the producer's trace; nil if the recorder does not state it.
  package var traceParent: TraceParent?
  /// In the producer's order.
  package var pointers = PointerEventList()
  /// In the order of their times.
  package var pages: [PageView] = []
  /// In the producer's order.
  package var labels = LabelList()
  /// The finished videos that ``frames`` stand for; nil for pictures.
  var videos: FinishedVideos?
  /// The text that has the pictures of ``frames``, if it is a file of the batch; nil if the batch itself has them.
  var contents: StreamContents?
  /// The captures of refused frames whose masks, if they have any, are not in ``frames``.
  package var blindMs: [Int64] = []
}

/// A batch before its format is known: its name, which for most recorders contains the session, and its contents.
package struct BatchSource {
  /// The batch's file name without the suffix of an archive, such as `.tar.gz`.
  package let name: String
  package internal(set) var contents: any BatchContents
  /// The path that the user gave, for commands in messages; nil for a batch of a queue.
  var path: String?
  /// The session of a recording that does not name its own; nil if the batch has no name.
  package var session: String?
  /// The session by the batch's name; nil if an option names the session, or the batch has no name.
  var sessionName: SessionName?
  package var options = InputOptions()
  /// Notes on files that are left out.
  var notes: [String] = []
  /// Labels that lie beside the pictures.
  var labels = LabelList()
  /// Whether a `batch.json` lists the frames, also those in folders.
  var isDescribed = false

  /// Whether a form takes the batch although it reads few of its names.
  var takesFew = false

  /// Whether a form that reads `count` of the names reads enough of the batch.
  func isRead(by count: Int, of names: [String]) -> Bool {
    takesFew ? count > 0 : PictureNames.areMostly(count, of: names)
  }

  /// The folder of the pictures as a word of a command.
  var folderWord: String { (path ?? name).shellWord }

  /// The name up to its last `-`. Some recorders write a time behind that `-`.
  var nameBeforeDash: String? {
    name.lastIndex(of: "-").map { String(name[..<$0]) }.flatMap { $0.isEmpty ? nil : $0 }
  }
}

/// A format: the file names and records with which one kind of recorder writes a batch. To add a format, add a file beside this
/// one and an entry in ``FormatList``. The order of that list matters.
package protocol BatchFormat {
  /// The format's name in messages.
  static var name: String { get }

  /// Reads the sessions of a batch; most formats have one.
  ///
  /// The format puts every name of ``BatchContents/topNames`` into ``BatchDraft/frames``, ``BatchDraft/refused`` or
  /// ``BatchDraft/sideFiles`` of one of the drafts. A top-level name in none of them vanishes silently: no manifest lists it.
  /// ``BatchSessions`` itself refuses names in folders that no draft lists.
  ///
  /// - Returns: nil when the container has another format. Then ``BatchSessions`` asks the next format.
  /// - Throws: ``BadBatch`` when it is this format, but broken as a whole.
  static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]?
}

extension BatchDraft {
  /// Moves all instants.
  mutating func move(byMs offsetMs: Int64) {
    guard offsetMs != 0 else { return }
    // An instant that cannot be moved is far beyond the limits, and stays so.
    func moved(_ timeMs: Int64) -> Int64 {
      let (sum, isTooLarge) = timeMs.addingReportingOverflow(offsetMs)
      return isTooLarge ? timeMs : sum
    }
    frames = frames.map {
      Frame(source: $0.source, paths: $0.paths, timeMs: moved($0.timeMs), look: $0.look, note: $0.note)
    }
    endMs = endMs.map(moved)
    pointers.move(moved)
    pages = pages.map { $0.at(moved($0.timeMs)) }
    labels.move(moved)
    blindMs = blindMs.map(moved)
    clockOffsetMs = moved(clockOffsetMs)
  }
}
