// Times of cues in WebVTT. Pure.

import ISOMedia

package enum CueTime {
  /// Returns hours, minutes, seconds and milliseconds in the form of WebVTT.
  package static func clock(_ ms: Int64) -> String {
    let seconds = ms / 1_000
    return "\((seconds / 3_600).digits(2)):\((seconds / 60 % 60).digits(2)):\((seconds % 60).digits(2))"
      + ".\((ms % 1_000).digits(3))"
  }

  /// Reads the two times of a cue, as ``clock(_:)`` writes them.
  static func times(in line: ArraySlice<UInt8>) -> ClosedRange<Int64>? {
    let words = line.split(separator: UInt8(ascii: " "))
    guard words.count == 3, words[1].elementsEqual("-->".utf8), let start = milliseconds(words[0]),
      let end = milliseconds(words[2]), start <= end
    else { return nil }
    return start...end
  }

  private static func milliseconds(_ clock: ArraySlice<UInt8>) -> Int64? {
    let numbers = clock.split { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }
      .compactMap { $0.count < 10 ? Int64(String(decoding: $0, as: UTF8.self)) : nil }
    guard numbers.count == 4, numbers.allSatisfy({ $0 >= 0 }) else { return nil }
    return ((numbers[0] * 60 + numbers[1]) * 60 + numbers[2]) * 1_000 + numbers[3]
  }
}
