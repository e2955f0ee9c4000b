// The text of `session.json` and `session.ffconcat` without the first segments of the session. Pure.

import Encoding
import FrameBatches
import JSON

extension IndexText {
  /// Returns the view that wrote these files, without its first segments.
  ///
  /// - Parameters:
  ///   - removed: the first segments of the session, in order.
  ///   - first: the segment behind them.
  ///   - last: the session's last segment.
  /// - Returns: nil if the files are not of this form, or list other segments.
  static func removing(
    _ removed: [SessionEntry], before first: SessionEntry, last: SessionEntry, json: [UInt8], script: [UInt8],
    of session: SessionID
  ) -> IndexText? {
    guard let parts = parts(of: json, session: session),
      var view = IndexText(parts, [last], of: session, json: json, script: script),
      view.removeFirst(removed, before: first)
    else { return nil }
    return view
  }

  /// - Returns: whether the view began with these segments; if not, it is of no use any more.
  private mutating func removeFirst(_ removed: [SessionEntry], before first: SessionEntry) -> Bool {
    var (entries, lines, unrecorded) = ([UInt8](), Self.scriptHead, [UInt8]())
    for (segment, next) in zip(removed, removed.dropFirst() + [first]) {
      entries += Self.item(Self.entry(segment), after: !entries.isEmpty)
      lines += Self.scriptEntry(segment, lengthMs: next.startMs - segment.startMs)
      if let gap = segment.gap(before: next) { unrecorded += Self.item(gap.json.bytes(), after: !unrecorded.isEmpty) }
    }
    guard list.remove(items: entries), script.starts(with: lines), unrecorded.isEmpty || gaps.remove(items: unrecorded)
    else { return false }
    script.removeSubrange(Self.scriptHead.count..<lines.count)
    index.forget(removed, startMs: first.startMs)
    return true
  }
}

extension [UInt8] {
  /// Removes the first items of a list, with the comma behind them.
  ///
  /// - Returns: whether the list began with them.
  fileprivate mutating func remove(items: [UInt8]) -> Bool {
    guard starts(with: items) else { return false }
    let isAll = count == items.count
    guard isAll || self[items.count] == UInt8(ascii: ",") else { return false }
    removeFirst(isAll ? items.count : items.count + 1)
    return true
  }
}
