// A batch as it was read and checked, before any picture is decoded.

import JSON

/// A captured image and its instant.
package struct Frame: Sendable, Equatable {
  /// The producer's name of the image; for several layers, all names.
  package let source: String
  /// The paths of the files in the batch's container: one, or one for each layer.
  package let paths: [String]
  /// The capture time, in unix milliseconds.
  package let timeMs: Int64
  package let look: FrameComposition
  /// A remark for the manifest on how the frame got its time; nil for most frames.
  package var note: String?
  /// Whether it comes in the recorder's order after a frame with a later time.
  package var stepsBack = false

  /// The regions to hide.
  package var masks: Masks { look.masks }

  /// The producer's name of the frame; for a file in a folder, its path in the batch.
  package var fullName: String {
    guard paths.count == 1, paths[0].hasSuffix("/" + source) else { return source }
    return paths[0]
  }

  package init(source: String, paths: [String], timeMs: Int64, look: FrameComposition, note: String? = nil) {
    self.source = source
    self.paths = paths
    self.timeMs = timeMs
    self.look = look
    self.note = note
  }

  /// A frame of one image file without masks.
  package init(source: String, path: String, timeMs: Int64) {
    self.init(source: source, paths: [path], timeMs: timeMs, look: FrameComposition(content: .image(nil), masks: .none))
  }
}

/// A frame or file that is not shown, with the reason.
public struct RefusedFrame: Sendable, Equatable {
  /// The producer's name of the frame or file.
  public let source: String
  /// Why it is not shown.
  public let reason: String
  package let kind: Kind

  /// The kinds of reasons that advice on a batch depends on.
  package enum Kind: Sendable {
    /// The files of a frame cannot be decoded.
    case undecoded(Refusal)
    /// The name is not that of a frame.
    case otherName
    /// The file lies in a folder, where no format looks for it.
    case inFolder
    /// Another file or name of the batch shows its picture: no picture is lost.
    case copy
    /// An entry of a list, or a record, that would have been a frame.
    case record
    /// Another file of its instant is shown. A companion is another form of that picture.
    case sameInstant(isCompanion: Bool)
    /// A frame of a folder that came before the end of what is published of it.
    case early
    case other
  }

  /// Creates an entry for a frame or file.
  public init(source: String, reason: String) { self.init(source: source, reason: reason, kind: .other) }

  package init(source: String, reason: String, kind: Kind) {
    (self.source, self.reason, self.kind) = (source, reason, kind)
  }

  /// A frame whose files cannot be decoded.
  package init(source: String, undecoded refusal: Refusal) {
    let refusal = refusal.at("decode \(source)")
    self.init(source: source, reason: refusal.text, kind: .undecoded(refusal))
  }

  /// Whether another file shows its picture.
  package var isCopy: Bool { if case .copy = kind { true } else { false } }

  /// The entry of a frame that a later run of its folder may find whole.
  package var leftForLater: RefusedFrame {
    RefusedFrame(source: source, reason: reason + "; left for the next run", kind: kind)
  }

  /// Whether two entries say the same.
  public static func == (one: RefusedFrame, other: RefusedFrame) -> Bool {
    one.source == other.source && one.reason == other.reason
  }
}

/// A batch: frames of one session in the order of their captures. Of several frames at the same instant, the first one that
/// can be decoded is shown. The file in the shallowest folder comes first, then the larger picture, then the later one.
package struct Batch: Sendable {
  /// The capture mode of the recorder.
  package enum Capture: String, Sendable {
    /// At a regular interval: a long time without a frame is a gap.
    case interval
    /// On each change of the picture: in a long time without a frame, the picture stayed the same.
    case onChange
  }

  /// The name in the spool or on the command line.
  package internal(set) var name: String
  package let session: SessionID
  /// The batch's name without an archive's ending, perhaps with folders before it, if the session is what it says up to `@`; nil if
  /// the batch, an option or a pattern says the session.
  package internal(set) var namesake: String?
  /// The nominal interval of captures, in milliseconds.
  package let intervalMs: Int64
  /// The end of the last frame's hold in unix milliseconds, later than the last capture.
  package internal(set) var endMs: Int64
  /// Whether the end is a guess: a later picture of the session may follow at any instant after the last one.
  package var isEndOpen = false
  /// Milliseconds that were added to all instants, because the clock of the device was behind; negative if it was ahead. It changes
  /// neither the times nor the digest.
  package var clockOffsetMs: Int64 = 0
  package let capture: Capture
  /// Whether its recorder captures on change only: a picture stays on screen until the next batch.
  package var capturesChanges: Bool
  /// Whether the batch states its capture mode itself.
  package let statesCapture: Bool
  /// Whether the session ends with this batch.
  package internal(set) var isFinal: Bool
  /// The frames; at least one.
  package internal(set) var frames: [Frame]
  /// The frames that were refused before decoding.
  package internal(set) var refused: [RefusedFrame]
  /// The pictures that are neither frames nor companions of frames.
  package internal(set) var leftOut = LeftOutPictures()
  /// The advice on the names of a batch of which few have a form; nil if most have one.
  package internal(set) var adviceOnNames: String?
  /// Warnings about how the batch is written.
  package internal(set) var warnings: [String]
  /// The producer's metadata, copied into the manifests unchanged.
  package let metadata: JSONValue
  /// The pointer events.
  package let pointers: PointerTrack
  /// The name of the zone in which the producer tells times; nil if none is stated. It changes neither the times nor the digest.
  package var timeZone: String?
  /// The pages that it shows, in the order of their times. They change neither the bytes nor the digest of the batch.
  package internal(set) var pages: [PageView] = []
  /// In the order of their times. They change neither the bytes nor the digest of the batch.
  package internal(set) var labels: [Label] = []
  /// The finished videos that ``frames`` stand for; nil for pictures.
  package internal(set) var videos: FinishedVideos?
  /// The step of the producer's trace. It changes neither the bytes nor the digest of the batch.
  package var traceParent: TraceParent?
  /// The folder of loose pictures that the batch is a part of, or all of; nil for a batch that cannot grow.
  package internal(set) var folder: GrowingFolder?

  package init(
    name: String, session: SessionID, intervalMs: Int64, endMs: Int64, capture: Capture, isFinal: Bool, frames: [Frame],
    refused: [RefusedFrame], warnings: [String], metadata: JSONValue, pointers: PointerTrack = .none,
    traceParent: TraceParent? = nil, statesCapture: Bool = false
  ) {
    self.name = name
    self.session = session
    self.intervalMs = intervalMs
    self.endMs = endMs
    self.capture = capture
    capturesChanges = capture == .onChange
    self.statesCapture = statesCapture
    self.isFinal = isFinal
    self.frames = frames
    self.refused = refused
    self.warnings = warnings
    self.metadata = metadata
    self.pointers = pointers
    self.traceParent = traceParent
  }
}

/// A folder of loose pictures, of which a batch is a part, or all. It may have grown since some of its pictures were published.
package struct GrowingFolder: Sendable, Equatable {
  /// The time of all its pictures, in unix milliseconds.
  package let shownMs: Range<Int64>
}
