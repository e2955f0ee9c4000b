// The labels that are shown over the pictures, and their cues in WebVTT. Films and playlists have the same. Pure.

import FileSystem
import FrameBatches

/// A text over the pictures, and the instants of its span in unix milliseconds.
package struct Caption: Sendable, Equatable {
  package let unix: Range<Int64>
  package let text: String

  /// The kinds of labels that are captions.
  private static let kinds: Set = [Label.Kind.caption, Label.Kind.step, Label.Kind.error]
  /// How long a label without an end is shown at most, in milliseconds.
  package static let longestMs: Int64 = 5_000
  /// How long a label without an end is shown at least if no other one follows, in milliseconds: viewers have to read it.
  private static let shortestMs: Int64 = 2_000
  /// Maximum bytes of a text on screen.
  private static let mostBytes = 512

  package init(unix: Range<Int64>, text: String) { (self.unix, self.text) = (unix, text) }

  /// Returns captions in the order of their starts.
  ///
  /// - Parameters:
  ///   - labels: in the order of their times.
  ///   - shown: the part of the session, in unix milliseconds.
  ///   - isWhole: whether it is all of the session. Then a label before its first picture, or behind its last one, is shown there.
  ///   - seamMs: where the labels end that are known, in unix milliseconds. A label without an end is shown until then, or shortly; that
  ///     does not depend on later labels.
  package static func all(
    _ labels: [Label], in shown: Range<Int64>, isWhole: Bool, seamMs: Int64 = .max
  ) -> [Caption] {
    guard !shown.isEmpty else { return [] }
    let placed = labels.filter { kinds.contains($0.kind) }.map { label -> (startMs: Int64, label: Label) in
      guard isWhole, !shown.contains(label.timeMs) else { return (label.timeMs, label) }
      let isBefore = label.timeMs < shown.lowerBound
      return (isBefore ? shown.lowerBound : max(shown.lowerBound, shown.upperBound - longestMs), label)
    }
    let ordered = placed.enumerated().sorted { ($0.element.startMs, $0.offset) < ($1.element.startMs, $1.offset) }
    var captions: [Caption] = []
    var (nextMs, laterMs) = (Int64.max, Int64.max)
    for (_, (startMs, label)) in ordered.reversed() {
      // A text is shown until the next one.
      if laterMs > startMs { nextMs = laterMs }
      laterMs = startMs
      let heldMs = min(nextMs, startMs + longestMs, max(seamMs, startMs + shortestMs))
      let isCaption = label.kind == Label.Kind.caption
      let endMs =
        label.timeMs >= shown.upperBound && isWhole
        ? shown.upperBound : isCaption ? label.endMs ?? heldMs : max(label.endMs ?? 0, heldMs)
      let unix = (startMs..<max(startMs, endMs)).clamped(to: shown)
      if !unix.isEmpty { captions.append(Caption(unix: unix, text: label.text.cut(to: mostBytes))) }
    }
    captions.reverse()
    return captions
  }
}

/// Texts of WebVTT.
package enum CueText {
  /// Returns a cue with the empty line before it.
  ///
  /// - Parameters:
  ///   - startMs: in milliseconds; `endMs`, too.
  package static func cue(_ startMs: Int64, _ endMs: Int64, _ text: String) -> String {
    "\n\(CueTime.clock(startMs)) --> \(CueTime.clock(endMs))\n\(escaped(text))\n"
  }

  /// Returns a text for a cue: its markup is shown as it is, and it has no empty line, which would end the cue.
  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
      .split(separator: "\n").joined(separator: "\n")
  }
}
