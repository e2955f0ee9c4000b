// The words in the pictures of a segment: `segment-<start>.text.json`, beside its manifest. It follows from the published video, in
// which masks are painted. It can be removed and made anew at any time.

import Encoding
import FrameBatches
import JSON

/// A word, with the time in which it is visible.
package struct VisibleWord: Sendable, Equatable {
  package let text: String
  /// In pixels of the picture as captured.
  package let box: PictureRegion
  package let confidence: Int
  /// From the picture in which it appears until its area changes, within the segment; in unix milliseconds.
  package var shownMs: Range<Int64>

  package init(text: String, box: PictureRegion, confidence: Int, shownMs: Range<Int64>) {
    (self.text, self.box, self.confidence, self.shownMs) = (text, box, confidence, shownMs)
  }

  /// Whether it is the same word at the same place.
  package func isSame(_ text: String, in box: PictureRegion) -> Bool { self.text == text && self.box.overlaps(box) }
}

extension PictureRegion {
  func overlaps(_ other: PictureRegion) -> Bool {
    x < other.x + other.width && other.x < x + width && y < other.y + other.height && other.y < y + height
  }
}

package struct SegmentText: Sendable, Equatable {
  package static let format = "segment-text/1"
  /// Maximum number of words of a segment, and bytes of its file.
  package static let (maximumWords, maximumBytes) = (40_000, 16 << 20)
  /// The name under which a file is written, with the session locked. A later one replaces what a crash leaves.
  static let temporary = ".text"

  package let session: SessionID
  package let startMs: Int64
  package let endMs: Int64
  /// The digest of the video.
  package let sha256: String
  /// The program that has read the words, with its version; and its language.
  package let engine: String
  package let language: String
  /// The number of pictures that were read.
  package let pictures: Int
  /// When the pictures came on screen that could not be read, in unix milliseconds.
  package let unreadMs: [Int64]
  /// The number of words above the maximum, which are left out.
  package let leftOut: Int
  /// In the order in which they appear.
  package let words: [VisibleWord]
}

extension SegmentText {
  package var bytes: [UInt8] { json.bytes() + [UInt8(ascii: "\n")] }

  private var json: JSONValue {
    .object([
      "format": .string(Self.format), "session": .string(session.description),
      "file": .string(SegmentName.video(startMs)), "startMs": .number(startMs), "endMs": .number(endMs),
      "sha256": .string(sha256), "engine": .string(engine), "language": .string(language),
      "pictures": .number(pictures), "unreadMs": .array(unreadMs.map { .number($0) }), "leftOut": .number(leftOut),
      "words": .array(words.map(\.json)),
    ])
  }

  /// Whether a file says that no word is left out and that every picture could be read. It says so before its words.
  package static func isWhole(_ bytes: [UInt8]) -> Bool {
    let head = bytes.prefix(1_024)
    return [#""leftOut":0,"#, #""unreadMs":[],"#].allSatisfy { !head.ranges(of: Array($0.utf8)).isEmpty }
  }

  /// Reads a file.
  package init(_ bytes: [UInt8]) throws(JSONError) {
    let json = try JSONParser.parse(bytes)
    guard try json.required("format", .string) == Self.format else { throw JSONError("format: not \(Self.format)") }
    guard let session = SessionID(try json.required("session", .string)) else { throw JSONError("session: no name") }
    self.session = session
    (startMs, endMs) = (try json.required("startMs", in: 0...(1 << 42)), try json.required("endMs", in: 0...(1 << 42)))
    sha256 = try json.required("sha256", .string)
    (engine, language) = (try json.required("engine", .string), try json.required("language", .string))
    pictures = Int(try json.required("pictures", in: 0...(1 << 30)))
    leftOut = Int(try json.required("leftOut", in: 0...(1 << 40)))
    unreadMs = try json.required("unreadMs", .array).map { (value) throws(JSONError) in
      guard let instant = value.integer else { throw JSONError("unreadMs: not a whole number") }
      return instant
    }
    let words = try json.required("words", .array)
    guard words.count <= Self.maximumWords, startMs < endMs,
      try json.required("file", .string) == SegmentName.video(startMs)
    else { throw JSONError("its name, times and words do not agree") }
    let shown = startMs...endMs
    self.words = try words.map { (word) throws(JSONError) in try VisibleWord(word, within: shown) }
  }

  /// Whether it has the words of a segment.
  package func isText(of segment: PublishedSegment) -> Bool { startMs == segment.startMs && sha256 == segment.sha256 }
}

extension VisibleWord {
  fileprivate var json: JSONValue {
    .object([
      "text": .string(text), "x": .number(box.x), "y": .number(box.y), "width": .number(box.width),
      "height": .number(box.height), "fromMs": .number(shownMs.lowerBound), "untilMs": .number(shownMs.upperBound),
      "confidence": .number(confidence),
    ])
  }

  fileprivate init(_ json: JSONValue, within bounds: ClosedRange<Int64>) throws(JSONError) {
    func side(_ key: String) throws(JSONError) -> Int { Int(try json.required(key, in: 0...(1 << 14))) }
    text = try json.required("text", .string)
    box = PictureRegion(
      x: try side("x"), y: try side("y"), width: try side("width"), height: try side("height"))
    confidence = Int(try json.required("confidence", in: 0...100))
    let (from, until) = (try json.required("fromMs", in: bounds), try json.required("untilMs", in: bounds))
    guard from <= until else { throw JSONError("a word ends before it begins") }
    shownMs = from..<until
  }
}
