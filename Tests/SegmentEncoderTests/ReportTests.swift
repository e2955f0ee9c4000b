import Testing

@testable import JSON
@testable import SegmentEncoder

/// A report keeps no name and no unknown member.
@Suite struct ReportTests {
  @Test(arguments: [
    ("frame-0001.jpg", "aaaaa-0000.aaa"), ("Ärzte 7", "äaaaa 0"), ("مرحبا", "äääää"), ("a\u{7}b", "a?a"), ("", ""),
    (String(repeating: "x", count: 90), String(repeating: "a", count: 80) + "…"),
  ])
  func shapeHasNoLetterOfTheName(name: String, shape: String) {
    #expect(Pseudonyms.shape(of: name) == shape)
  }

  @Test func equalNamesHaveEqualStandIns() {
    var names = Pseudonyms { $0 == "session.json" }
    let all = ["Anna", "Otto", "Anna", "session.json"].map { names.name($0) }
    #expect(all == ["Aaaa#1", "Aaaa#2", "Aaaa#1", "session.json"])
  }

  /// The names `video` and `my film` are words of messages, too.
  @Test(arguments: [
    ("the video lasts 180000 ticks instead of 225000", "the aaaaa#1 lasts 180000 ticks instead of 225000"),
    ("called Anna, but its manifests say: Otto", "called Aaaa#3, but its manifests say: Aaaa#4"),
    ("cannot read my film.", "cannot read aa aaaa#2 ."),
    ("not a JPEG: '4711 of Anna', 16384×20000 pixels", "not a JPEG: ‘0000 aa Aaaa#3’, 16384×20000 pixels"),
    ("no file /home/anna/shots.zip; see it", "no file /aaaa/aaaa/aaaaa.aaa#3; see it"),
    ("of 4915112345678 at 1767859512340", "of 0000000000000#3 at 1767859512340"),
    ("the segments' end; --repair the session's", "the segments' end; --repair the session's"),
    ("Grüße an alle", "Aaääa#3 an aaaa#4"),
    ("a “word” left open 'to the end", "a ‘aaaa#3’ left open ‘aa aaa aaa#4"),
  ])
  func messageKeepsTheWordsOfThisProgram(message: String, kept: String) {
    var names = Pseudonyms()
    for name in ["video", "my film"] { _ = names.name(name) }
    #expect(names.sentence(message) == kept)
  }

  @Test func unknownMembersAreDroppedAndCounted() throws {
    let json = try JSONParser.parse(
      Array(
        #"{"a":1,"b":{"c":"Anna","later":[1]},"d":"no number","e":["Otto",2],"f":"secret","g":"hidden","h":1e999}"#.utf8
      ))
    var redaction = Redaction(names: Pseudonyms())
    let rules = AllowedValue.object([
      "a": .integer, "b": .object(["c": .name]), "d": .integer, "e": .list(.name), "f": .size, "g": .hidden,
      "h": .number,
    ])
    #expect(redaction.kept(json, as: rules)?.line == #"{"a":1,"b":{"c":"Aaaa#1"},"e":["Aaaa#2"],"f":6}"#)
    #expect(redaction.dropped == 4)
  }

  /// All own words are in lower case, or they would never be found.
  @Test func wordsOfMessagesAreLowerCaseLetters() {
    #expect(ReportWords.all.count > 500)
    #expect(ReportWords.all.allSatisfy { $0.utf8.allSatisfy { (97...122).contains($0) } })
  }
}
