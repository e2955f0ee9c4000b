import Testing

@testable import JSON

@Suite struct JSONTests {
  private func parse(_ text: String) throws -> JSONValue { try JSONParser.parse(Array(text.utf8)) }

  @Test(arguments: [
    "null", "true", "[]", "{}", "0", "-0", "1.50", "1e400", "-12E+3", #""""#,
    #"{"a":[1,2,{"b":null}],"ä":"\u0001\n\"\\"}"#, "123456789012345678901234567890",
  ])
  func parsedJSONIsWrittenUnchanged(text: String) throws {
    #expect(try parse(text).line == text)
  }

  @Test func spaceAndEscapesAreUnderstood() throws {
    #expect(try parse(" [ 1 ,\n\t" + #""\u00e4\ud83d\ude00\/\t" ] "#).array?[1].string == "ä😀/\t")
    #expect(try parse(#"{"b":1,"a":2}"#).line == #"{"a":2,"b":1}"#)
  }

  /// JavaScript's `JSON.stringify` writes half a pair as an escape where a program cut a text between the halves.
  @Test func halfASurrogatePairBecomesTheReplacementCharacter() throws {
    #expect(try parse(#""\ud800""#).string == "\u{FFFD}")
    #expect(try parse(#""\ud800\u0041""#).string == "\u{FFFD}A")
    #expect(try parse(#""\ud800\ud83d\ude00""#).string == "\u{FFFD}😀")
    #expect(try parse(#"["\udc00x","\ud83d\n"]"#).array?.map(\.string) == ["\u{FFFD}x", "\u{FFFD}\n"])
  }

  @Test(arguments: [
    #"{"a":{"m":1},"b":[{"c":-1.50,"d":"ä"},{}],"m":"0f","z":NaN}"#, #"{"a":"","m":[1,{"m":2}]}"# + "\n ",
    #"{"a":null,"m":{},"é":true}"#,
  ])
  func restOfATextIsThatOfTheOtherMembers(text: String) throws {
    let (value, rest) = try JSONParser.parse(Array(text.utf8), without: "m")
    var members = try #require(value.object)
    members["m"] = nil
    let parts = try #require(rest)
    #expect(Array(parts.0) + Array(parts.1) == JSONValue.object(members).bytes())
  }

  /// Each is another text than the one that is written for its value, or has no such member behind another one.
  @Test(arguments: [
    #"{"b":1,"a":2,"m":3}"#, #"{"a":1, "m":2}"#, #"{"a":1,"m" :2}"#, #" {"a":1,"m":2}"#, #"{"a":"\u0041","m":2}"#,
    #"{"\u0061":1,"m":2}"#, #"{"a":{"c":1,"b":2},"m":3}"#, #"{"a":[1 ],"m":3}"#, #"{"a":1,"m":"\/"}"#,
    #"{"aa":1,"a":2,"m":3}"#, "\u{FEFF}{\"a\":1,\"m\":2}", #"{"m":1,"z":2}"#,
    #"{"a":{"b":1,"m":2}}"#, #"[1,{"a":1,"m":2}]"#, #"{"a":1,"m":2,"l":3}"#,
  ])
  func textInAnotherFormHasNoRest(text: String) throws {
    #expect(try JSONParser.parse(Array(text.utf8), without: "m").rest == nil)
    #expect(try JSONParser.parse(Array(text.utf8), without: "m").value == parse(text))
  }

  @Test func equalTextsMayBeWrittenWithOtherBytes() throws {
    let (one, other) = (try parse(#"{"a":["\u00e9"]}"#), try parse(#"{"a":["e\u0301"]}"#))
    #expect(one == other && !one.isWritten(like: other) && one.isWritten(like: one))
    #expect(try !parse(#"{"a":1}"#).isWritten(like: parse(#"{"a":1,"b":1}"#)))
    #expect(try !parse(#"{"\u00e9":1}"#).isWritten(like: parse(#"{"e\u0301":1}"#)))
  }

  @Test func byteOrderMarkBeforeTheTextIsIgnored() throws {
    #expect(try parse("\u{FEFF}{\"a\":1}").line == #"{"a":1}"#)
  }

  @Test func wholeNumberInAnyNotationIsAnInteger() throws {
    #expect(try parse("1767859512340").integer == 1_767_859_512_340)
    #expect(try parse("1767859512340.0").integer == 1_767_859_512_340)
    #expect(try parse("1.767859512340e12").integer == 1_767_859_512_340)
    #expect(try parse("1.5").integer == nil)
    #expect(try parse("1e300").integer == nil)
    #expect(try parse("9223372036854775808").integer == nil)
    #expect(try parse("NaN").double?.isNaN == true)
    #expect(try parse("-Infinity").double == -.infinity)
    #expect(try parse("[NaN]").isStrict == false)
    #expect(try parse("[1e999]").isStrict)
  }

  @Test(arguments: [
    "", " ", "nul", "[1,]", "[1 2]", #"{"a"}"#, #"{"a":}"#, "{a:1}", "{'a':1}", "01", "1.", ".5", "+1", "1e", "--1",
    #""a"#, #""\x""#, #""\u12g4""#, #""\u+123""#, "\"a\nb\"", "[1]x",
    #"{"a":1,"a":2}"#, "// x", "Inf", #""\ud800\u00""#, "\u{FEFF}", "\u{FEFF}\u{FEFF}1", "1\u{FEFF}",
  ])
  func invalidJSONIsRefused(text: String) {
    #expect(throws: JSONError.self, "\(text)") { try parse(text) }
  }

  @Test func brokenUTF8IsRefused() {
    for bytes in [[0xFF], [0x22, 0xC3, 0x22], [0x7B, 0xFF, 0x3A, 0x31, 0x7D]] as [[UInt8]] {
      #expect(throws: JSONError.self) { try JSONParser.parse(bytes) }
    }
  }

  @Test func errorNamesThePosition() {
    #expect {
      try parse("{\n \"a\": 1\n \"b\": 2}")
    } throws: {
      ($0 as? JSONError)?.description == "not JSON: a comma or } is missing at line 3, column 2"
    }
  }

  @Test func nestingIsBounded() {
    for open in ["[", #"{"a":"#] {
      #expect(throws: JSONError.self) { try parse(String(repeating: open, count: 100_000)) }
    }
  }
}
