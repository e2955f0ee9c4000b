import TestSupport
import Testing

@testable import FrameBatches

/// Members of JSON texts that break off anywhere.
@Suite struct TornJSONTests {
  private static let text =
    #"{"a":{"session":"no","b":["session","no"]},"note":"\"session\":\"no\"","session":"wal\u006b","frames":[{"session":"no"}]}"#

  @Test func memberIsFoundAsSoonAsItIsThere() throws {
    let bytes = Array(Self.text.utf8)
    let end = try #require(Self.text.firstRange(of: #"6b""#)).upperBound.utf16Offset(in: Self.text)
    for count in 0...bytes.count {
      let found = TornJSON(Array(bytes[..<count])).member("session")
      #expect(found == (count < end ? nil : "walk"), "\(count)")
    }
  }

  @Test func valueThatIsNoTextIsNone() {
    for text in [#"{"session":7}"#, #"{"x":"session"}"#, #"["session","walk"]"#, "session", #""session":"#, ""] {
      #expect(TornJSON(Array(text.utf8)).member("session") == nil, "\(text)")
    }
  }

  /// Damaged bytes end nothing but the text that they are in.
  @Test func damageDoesNoHarm() {
    var random = Random(seed: 5)
    for _ in 0..<2_000 {
      var bytes = Array(Self.text.utf8)
      for _ in 0..<3 { bytes[Int(random.int(0...Int64(bytes.count - 1)))] = UInt8(random.int(0...255)) }
      _ = TornJSON(bytes).member("session")
    }
  }
}
