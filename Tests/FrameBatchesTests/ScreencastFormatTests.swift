import TestSupport
import Testing

@testable import FrameBatches

@Suite struct ScreencastFormatTests {
  @Test(arguments: [
    ("1795386761.23138", 1_795_386_761_231), ("1795386761.2315", 1_795_386_761_232), ("1795386761", 1_795_386_761_000),
    ("1795386761.2314999999999999999999", 1_795_386_761_231), ("1.79538676123138e9", 1_795_386_761_231),
    ("1795386761231e-3", 1_795_386_761_231), ("17.95386761231E+8", 1_795_386_761_231), ("0.0005", 1), ("0.00049", 0),
    ("0", 0), ("1e-30", 0), ("0.9996", 1_000),
  ])
  func instantIsRoundedToTheNearestMillisecond(text: String, milliseconds: Int64) {
    #expect(UnixTime.milliseconds(ofSeconds: text) == milliseconds)
  }

  @Test(arguments: [
    "-1", "NaN", "Infinity", "-Infinity", "1e400", "1e99999999999999999999", "100000000000000", "1795386761231",
  ])
  func invalidTimestampIsNil(text: String) { #expect(UnixTime.milliseconds(ofSeconds: text) == nil) }

  @Test func frameWithoutAUsableTimestampIsRefusedAndTheOthersKept() throws {
    let good = #"{"data":"\#(RRWebTests.pixel)","metadata":{"timestamp":1767859512.34}}"#
    let bad = [
      (#"{"data":"x","metadata":{}}"#, "no timestamp"),
      (#"{"data":"x","metadata":{"timestamp":"1"}}"#, "the timestamp is not a number of seconds since 1970"),
      (#"{"data":"x","metadata":{"timestamp":NaN}}"#, "the timestamp is not a number of seconds since 1970"),
      (#"{"data":"x","metadata":{"timestamp":1e400}}"#, "the timestamp is not a number of seconds since 1970"),
      (#"{"method":"Page.screencastFrame","params":{"metadata":{"timestamp":1}}}"#, "no \"data\""),
      (
        #"{"data":"x","metadata":{"timestamp":1,"timestamp":2}}"#,
        #"not JSON: a second "timestamp" in the event at byte \#(good.utf8.count + 1)"#
      ),
      (#"{"data":"x","metadata":{"#, "the line breaks off at byte \(good.utf8.count + 25)"),
    ]
    for (line, reason) in bad {
      let text = "\(good)\n\(line)\n\(good)\n"
      let source = BatchSource(name: "b", contents: StreamContents(.memory(Array(text.utf8))), session: "b")
      let draft = try #require(try ScreencastFormat.read(source, limits: Limits())?.first)
      #expect(draft.frames.map(\.timeMs) == [1_767_859_512_340, 1_767_859_512_340])
      #expect(draft.refused == [RefusedFrame(source: "b#1", reason: reason)])
      #expect(try RRWebFormat.read(source, limits: Limits()) == nil)
    }
  }

  @Test func otherEventsOfTheProtocolAreIgnored() throws {
    let text = #"{"id":1,"result":{}}"# + "\n" + #"{"method":"Page.frameNavigated","params":{}}"#
    let source = BatchSource(name: "b", contents: StreamContents(.memory(Array(text.utf8))))
    #expect(try ScreencastFormat.read(source, limits: Limits()) == nil)
  }
}
