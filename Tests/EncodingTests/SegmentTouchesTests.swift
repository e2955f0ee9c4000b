import Testing

@testable import Encoding
@testable import JSON

/// The pointer events of a segment as a member of its manifest.
@Suite struct SegmentTouchesTests {
  @Test func manifestIsReadAsItIsWritten() throws {
    let touches = SegmentTouches(
      width: 33.33, height: 844,
      events: [
        .init(offsetMs: 0, kind: .down, pointer: 0, x: 0.01, y: -1_000_000),
        .init(offsetMs: 0, kind: .up, pointer: .max, x: 314.3, y: 5),
      ])
    #expect(
      touches.json.line
        == #"{"events":[[0,"down",0,0.01,-1000000],[0,"up",2147483647,314.3,5]],"height":844,"width":33.33}"#)
    #expect(try SegmentTouches(touches.json, durationMs: 1) == touches)
  }

  @Test(arguments: [
    "7", "{}", #"{"width":1,"height":1}"#, #"{"width":1,"height":1,"events":[]}"#,
    #"{"width":0,"height":1,"events":[[0,"up",0,1,2]]}"#, #"{"width":NaN,"height":1,"events":[[0,"up",0,1,2]]}"#,
    #"{"width":1,"height":1,"events":[[5000,"up",0,1,2]]}"#, #"{"width":1,"height":1,"events":[[-1,"up",0,1,2]]}"#,
    #"{"width":1,"height":1,"events":[[5,"up",0,1,2],[4,"up",0,1,2]]}"#,
    #"{"width":1,"height":1,"events":[[5,"tap",0,1,2]]}"#, #"{"width":1,"height":1,"events":[[5,"up",-1,1,2]]}"#,
    #"{"width":1,"height":1,"events":[[5,"up",0,Infinity,2]]}"#, #"{"width":1,"height":1,"events":[[5,"up",0,1]]}"#,
    #"{"width":1,"height":1,"events":[{"x":1}]}"#,
  ])
  func invalidMemberOfAManifestIsRefused(text: String) throws {
    let json = try JSONParser.parse(Array(text.utf8))
    #expect(throws: JSONError.self) { try SegmentTouches(json, durationMs: 5_000) }
  }
}
