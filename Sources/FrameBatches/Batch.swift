// A batch as it was read and checked, before any picture is decoded.

import JSON

/// An image, and the instant at which it was captured.
package struct Frame: Sendable, Equatable {
  /// The producer's name of the image; of several images, all names.
  package let source: String
  /// Where the files lie in the batch's container; one, unless it has layers.
  package let paths: [String]
  /// The capture, in unix milliseconds.
  package let timeMs: Int64
  package let look: FrameComposition
  /// A remark for the manifest on how the frame got its time; nil for most frames.
  package var note: String?

  /// The regions that must not be seen.
  package var masks: Masks { look.masks }

  package init(source: String, paths: [String], timeMs: Int64, look: FrameComposition, note: String? = nil) {
    self.source = source
    self.paths = paths
    self.timeMs = timeMs
    self.look = look
    self.note = note
  }

  /// Of one image file, as all recorders write them.
  package init(source: String, path: String, timeMs: Int64) {
    self.init(source: source, paths: [path], timeMs: timeMs, look: FrameComposition(content: .image(nil), masks: .none))
  }
}

/// A frame or file that is not shown, with the reason.
public struct RefusedFrame: Sendable, Equatable {
  public let source: String
  public let reason: String

  public init(source: String, reason: String) {
    self.source = source
    self.reason = reason
  }
}

/// A batch: frames of one session in the order of their captures. Of two at the same instant the one that came later
/// stands first: it wins, if it can be decoded.
package struct Batch: Sendable {
  /// The capture mode of the recorder.
  package enum Capture: String, Sendable {
    /// At a regular pace: a long silence is a gap.
    case interval
    /// When something changed: a long silence is a picture that stayed.
    case onChange
  }

  /// The name it had in the spool or on the command line.
  package let name: String
  package let session: SessionID
  /// The nominal interval of captures, in milliseconds.
  package let intervalMs: Int64
  /// The end of the last frame's hold in unix milliseconds, later than the last capture.
  package let endMs: Int64
  package let capture: Capture
  /// Whether the session ends with this batch.
  package let isFinal: Bool
  /// At least one.
  package let frames: [Frame]
  /// The frames that were refused before decoding.
  package let refused: [RefusedFrame]
  /// Warnings about how the batch is written.
  package let warnings: [String]
  /// The producer's own, carried into the manifests unchanged.
  package let metadata: JSONValue

  package init(
    name: String, session: SessionID, intervalMs: Int64, endMs: Int64, capture: Capture, isFinal: Bool, frames: [Frame],
    refused: [RefusedFrame], warnings: [String], metadata: JSONValue
  ) {
    self.name = name
    self.session = session
    self.intervalMs = intervalMs
    self.endMs = endMs
    self.capture = capture
    self.isFinal = isFinal
    self.frames = frames
    self.refused = refused
    self.warnings = warnings
    self.metadata = metadata
  }
}

/// A session's name: 1–128 of `A–Z a–z 0–9 . _ -`, not starting with a dot, so that it can be a directory's name.
public struct SessionID: Sendable, Hashable, CustomStringConvertible {
  /// The rule that a refused session ID breaks.
  public static let rule = "use 1 to 128 of A–Z a–z 0–9 . _ -, not starting with a dot"

  public let description: String

  /// nil for other text: invalid IDs are refused, and never changed.
  public init?(_ text: String) {
    let allowed = { (byte: UInt8) in
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
    guard (1...128).contains(text.utf8.count), text.utf8.allSatisfy(allowed), !text.hasPrefix(".") else { return nil }
    description = text
  }
}
