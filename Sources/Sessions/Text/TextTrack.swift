// Which words are visible when: a word stays from the picture in which it appears until its area changes. Pure.

import Encoding

struct TextTrack {
  /// The words on screen, and those that have gone.
  private var open: [VisibleWord] = []
  private var closed: [VisibleWord] = []
  private(set) var leftOut = 0
  private(set) var pictures = 0
  private(set) var unreadMs: [Int64] = []

  /// The boxes of the words on screen.
  var boxes: [PictureRegion] { open.map(\.box) }

  /// Begins with words of the picture before, which the first picture equals.
  mutating func carry(_ words: [VisibleWord], atMs: Int64) {
    for word in words { add(FoundWord(text: word.text, box: word.box, confidence: word.confidence), atMs: atMs) }
  }

  /// Adds a picture that differs from the one before.
  ///
  /// - Parameters:
  ///   - found: the words in the regions of the change; nil if they could not be read.
  ///   - nowMs: when it comes on screen, in unix milliseconds.
  mutating func show(_ found: [FoundWord]?, _ change: TextChange, atMs nowMs: Int64) {
    if found == nil { unreadMs.append(nowMs) } else { pictures += 1 }
    // Words beside the change only surround it: they are known.
    let new = (found ?? []).filter { change.touches($0.box) }
    var gone: [VisibleWord] = []
    open.removeAll { word in
      // A word that has grown replaces its beginning, which need not touch the change.
      guard change.touches(word.box) || new.contains(where: { $0.box.hasMiddle(of: word.box) }) else { return false }
      gone.append(word)
      return true
    }
    for word in new {
      // It is where it was: something beside it has changed.
      if let index = gone.firstIndex(where: { $0.isSame(word.text, in: word.box) }) {
        open.append(gone.remove(at: index))
      } else {
        add(word, atMs: nowMs)
      }
    }
    close(gone, atMs: nowMs)
  }

  /// Returns all words, in the order in which they appear.
  mutating func finish(atMs endMs: Int64) -> [VisibleWord] {
    close(open, atMs: endMs)
    open = []
    return closed.sorted {
      ($0.shownMs.lowerBound, $0.box.y, $0.box.x, $0.text) < ($1.shownMs.lowerBound, $1.box.y, $1.box.x, $1.text)
    }
  }

  private mutating func add(_ word: FoundWord, atMs nowMs: Int64) {
    guard open.count + closed.count < SegmentText.maximumWords else {
      leftOut += 1
      return
    }
    open.append(VisibleWord(text: word.text, box: word.box, confidence: word.confidence, shownMs: nowMs..<nowMs))
  }

  private mutating func close(_ words: [VisibleWord], atMs nowMs: Int64) {
    for var word in words {
      word.shownMs = word.shownMs.lowerBound..<max(word.shownMs.lowerBound, nowMs)
      closed.append(word)
    }
  }
}

extension PictureRegion {
  fileprivate func hasMiddle(of other: PictureRegion) -> Bool {
    (x..<x + width).contains(other.x + other.width / 2) && (y..<y + height).contains(other.y + other.height / 2)
  }
}
