import Encoding
import FrameBatches
import Sessions

/// An encoded segment in memory: an MP4 file and its manifest.
public struct Segment: Sendable {
  /// A frame on screen: its capture in unix milliseconds, the time for which the segment shows it in milliseconds, and whether it was
  /// captured in this segment, not in an earlier one.
  public typealias Frame = (captureMs: Int64, holdMs: Int64, isCaptured: Bool)

  /// The session that it is a part of.
  public let session: SessionID
  /// The MP4 file: H.264, with the timing track. Times in it are ticks of 1/90 000 s, from the segment's start.
  public let video: [UInt8]
  /// The manifest: JSON in UTF-8, format `segment-manifest/1`. The other properties are facts of it.
  public let manifest: [UInt8]
  /// The frames that were not shown since the segment before, and why.
  public let refused: [RefusedFrame]
  private let facts: PublishedSegment

  /// The time when its first frame comes on screen, in unix milliseconds.
  public var startMs: Int64 { facts.startMs }
  /// The time when its last frame leaves the screen, in unix milliseconds.
  public var endMs: Int64 { facts.endMs }
  /// The time after it that was not recorded, in milliseconds.
  public var gapAfterMs: Int64 { facts.gapAfterMs }
  /// Its frames, in order. Their holds add up to its duration.
  public var frames: [Frame] { facts.frames.map { ($0.timeMs, $0.holdMs, $0.isCaptured) } }
  /// The width of its pictures as captured, in pixels.
  public var width: Int { facts.width }
  /// The height of its pictures as captured, in pixels.
  public var height: Int { facts.height }
  /// Whether the session ends with it.
  public var isFinal: Bool { facts.isFinal }
  /// The SHA-256 of ``video``, in hexadecimal digits.
  public var sha256: String { facts.sha256 }
  /// The name that the manifest gives the video: `segment-<start>.mp4`.
  public var videoName: String { facts.file }
  /// The name that readers expect the manifest under: `segment-<start>.json`.
  public var manifestName: String { SegmentName.manifest(facts.startMs) }

  /// - Parameter video: the bytes that the manifest is of.
  init(_ manifest: SegmentManifest, of session: SessionID, video: [UInt8]) {
    self.session = session
    self.video = video
    facts = manifest.segment
    self.manifest = SegmentManifest.text(of: manifest.json)
    refused = manifest.refused
  }
}
