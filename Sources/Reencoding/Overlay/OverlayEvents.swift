// The text of an overlay's events: the note on a frame, and the pointer events while its picture is on screen. Pure. Events under masks
// are in no manifest.

import Encoding
import FrameBatches
import JSON

enum OverlayEvents {
  /// Maximum number of letters; a picture has room for fewer.
  private static let most = 200

  /// Returns a text for each frame of a segment; nil for a frame without a note and events.
  ///
  /// - Parameter manifest: of the segment.
  static func texts(of segment: PublishedSegment, _ manifest: JSONValue) throws(JSONError) -> [String?] {
    let notes = (manifest.object?["frames"]?.array ?? []).map { $0.object?["note"]?.string }
    let touches = try manifest.object?["touches"].map { (json) throws(JSONError) in
      try SegmentTouches(json, durationMs: segment.durationMs)
    }
    var rest = (touches?.events ?? [])[...]
    var endMs: Int64 = 0
    return segment.frames.enumerated().map { index, frame in
      endMs += frame.holdMs
      let own = rest.prefix { $0.offsetMs < endMs }
      rest = rest.dropFirst(own.count)
      let note = notes.indices.contains(index) ? notes[index].map { [$0] } ?? [] : []
      let all = note + words(of: own)
      return all.isEmpty ? nil : String(all.joined(separator: "; ").prefix(most))
    }
  }

  /// Returns `down 120,300`, `12 moves`, `up 130,310`.
  private static func words(of events: ArraySlice<SegmentTouches.Event>) -> [String] {
    var words: [String] = []
    var moves = 0
    func endMoves() {
      if moves > 0 { words.append(moves == 1 ? "1 move" : "\(moves) moves") }
      moves = 0
    }
    for event in events where words.count < most {
      if event.kind == .move {
        moves += 1
      } else {
        endMoves()
        words.append("\(event.kind.rawValue) \(Int(event.x.rounded())),\(Int(event.y.rounded()))")
      }
    }
    endMoves()
    return words
  }
}
