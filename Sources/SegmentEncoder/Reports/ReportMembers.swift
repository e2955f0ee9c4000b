// The members that a report keeps: of manifests, of the reason of a quarantined batch, and of a batch as `encode --dry-run` shows it.

import Encoding
import FrameBatches
import Sessions

enum ReportMembers {
  /// Of a segment's manifest. `manifestSha256` would allow to guess a name: all else is known.
  static let manifest = AllowedValue.object([
    "format": .word([PublishedSegment.format]), "session": .name, "batch": .name, "batchDigest": .digest,
    "part": .integer, "parts": .integer, "file": .name, "startMs": .integer, "endMs": .integer,
    "durationMs": .integer, "width": .integer, "height": .integer, "codedWidth": .integer, "codedHeight": .integer,
    "codec": .form(isCodec), "timescale": .integer, "bytes": .integer, "sha256": .digest, "samples": .integer,
    "frames": .list(frame), "refused": .list(refused), "intervalMs": .integer, "gapAfterMs": .integer, "final": .bool,
    "endIsOpen": .bool, "capture": capture, "clockOffsetMs": .integer, "encoder": encoder, "metadata": .size,
    "timeZone": .name, "touches": touches, SegmentPages.key: .size, SegmentLabels.key: .list(label),
    SegmentManifest.sealKey: .hidden, SegmentHealth.key: health,
  ])

  /// Of the reason beside a batch in quarantine. The advice repeats names, and its cause is there.
  static let reason = AllowedValue.object([
    "format": .word(["quarantine-reason/1"]), "batch": .name, "operation": .message, "file": .name, "cause": .message,
    "advice": .hidden,
    "attempt": .integer, "timeMs": .integer, "worker": .hidden, "object": .name, "tag": .hidden, "marks": .hidden,
  ])

  /// Of a session of a batch.
  static let inspected = AllowedValue.object([
    "batch": .name, "format": .message, "session": .name, "intervalMs": .integer, "capture": capture, "final": .bool,
    "startMs": .integer, "endMs": .integer, "segments": .integer, "frames": .list(inspectedFrame),
    "refused": .list(refused), "warnings": .list(.message), "touches": .integer,
    SegmentLabels.key: .integer,
    "gaps": .list(.object(["startMs": .integer, "endMs": .integer])),
  ])

  private static let capture = AllowedValue.word([
    Batch.Capture.interval.rawValue, Batch.Capture.onChange.rawValue,
  ])
  private static let refused = AllowedValue.object(["source": .name, "reason": .message])
  private static let frame = AllowedValue.object([
    "timeMs": .integer, "holdMs": .integer, "source": .name,
    "status": .word([FrameHold.Status.captured.rawValue, FrameHold.Status.continued.rawValue]),
    ChangedBlocks.key: .integer, "note": .message, PaintedMasks.key: .list(mask),
  ])
  private static let inspectedFrame = AllowedValue.object([
    "timeMs": .integer, "holdMs": .integer, "source": .name, "width": .integer, "height": .integer, "note": .message,
  ])
  private static let mask = AllowedValue.object([
    "x": .integer, "y": .integer, "width": .integer, "height": .integer,
  ])
  /// Without the events: the places of touches on a keyboard of the screen tell what was typed.
  private static let touches = AllowedValue.object(["width": .number, "height": .number, "events": .size])
  private static let label = AllowedValue.object([
    "timeMs": .integer, "endMs": .integer, "kind": .word(labelKinds),
    "level": .word(Set(Label.Level.allCases.map(\.rawValue))), "text": .size, "data": .size,
  ])
  private static let health = AllowedValue.object([
    "intervalMs": .integer, "missing": .integer, "extra": .integer, "clockSteps": .integer,
    "lateMs": .list(.list(.integer)), "pausesMs": .list(.list(.integer)),
  ])
  private static let labelKinds: Set = [
    Label.Kind.step, Label.Kind.caption, Label.Kind.page, Label.Kind.mark, Label.Kind.error, Label.Kind.log,
    Label.Kind.key,
  ]
  private static let encoder = AllowedValue.object([
    "quality": .word(Set(Quality.allCases.map(\.rawValue) + ["archive"])), "codec": .word(["libx264"]),
    "preset": .word(EncoderSettings.presets), "rateFactor": .number,
    "parameters": .word(EncoderSettings.allParameters), "maxHoldMs": .integer, "segmentMs": .integer,
    "background": .form { $0.first == "#" && Redaction.isHexadecimal($0.dropFirst(), digits: 6) }, "rules": .integer,
    "libavcodec": .form(Redaction.isVersion), "bits": .integer, "imported": .bool, "description": .hidden,
    "maxSide": .integer, "overlay": .hidden,
  ])

  /// Whether it is the codec of an H.264 track: `avc1.4D400B`.
  private static func isCodec(_ text: String) -> Bool {
    text.hasPrefix("avc1.") && Redaction.isHexadecimal(text.dropFirst(5), digits: 6)
  }
}
