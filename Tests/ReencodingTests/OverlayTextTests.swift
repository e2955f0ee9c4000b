import FrameBatches
import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import Reencoding

/// The texts of an overlay.
@Suite struct OverlayTextTests {
  private static let startMs: Int64 = 1_767_859_512_340

  /// Clocks in Berlin went from 02:00 to 03:00 on 29 March 2026. This system's rules of Berlin end in 2037.
  @Test(
    arguments: [
      ("UTC", 1_767_859_512_340, "2026-01-08 08:05:12 Z"), ("UTC", 1_767_859_512_999, "2026-01-08 08:05:12 Z"),
      ("Z", 951_782_400_000, "2000-02-29 00:00:00 Z"),
      ("Europe/Berlin", 1_767_859_512_340, "2026-01-08 09:05:12 +01:00"),
      ("Europe/Berlin", 1_774_745_999_999, "2026-03-29 01:59:59 +01:00"),
      ("Europe/Berlin", 1_774_746_000_000, "2026-03-29 03:00:00 +02:00"),
      ("Europe/Berlin", 2_224_749_600_000, "2040-07-01 10:00:00 Z"),
      ("Europe/London", 1_767_859_512_340, "2026-01-08 08:05:12 +00:00"),
      ("-03:30", 1_767_859_512_340, "2026-01-08 04:35:12 -03:30"),
      ("Asia/Kolkata", 1_767_859_512_340, "2026-01-08 13:35:12 +05:30"),
    ] as [(String, Int64, String)])
  func clockTellsTheCaptureInItsZone(zone: String, timeMs: Int64, text: String) throws {
    let forms = OverlayClock.forms(of: timeMs, in: try #require(try ZoneRules(named: zone)))
    #expect(forms == [text, String(text.dropFirst(11)), String(text.dropFirst(11).prefix(8))])
  }

  private static func segment(holdsMs: [Int64]) -> PublishedSegment {
    let endMs = startMs + holdsMs.reduce(0, +)
    return PublishedSegment(
      batch: "a", batchDigest: "a", part: 1, parts: 1, startMs: startMs, endMs: endMs, width: 375, height: 667,
      codedWidth: 376, codedHeight: 668, bytes: 1, sha256: "", samples: holdsMs.count,
      frames: holdsMs.map { PublishedSegment.Frame(timeMs: startMs, holdMs: $0, isCaptured: true) }, intervalMs: 1_000,
      gapAfterMs: 0, isFinal: false, encoder: .null)
  }

  @Test func eventsBelongToThePictureThatIsOnScreen() throws {
    let manifest = try JSONParser.parse(
      Array(
        #"""
        {"frames":[{"note":"cut"},{},{},{"note":"too\nlong"}],"touches":{"width":375,"height":667,"events":[
        [0,"down",0,10.5,20],[999,"move",0,11,21],[1000,"move",0,12,22],[1001,"move",0,13,23],[1500,"up",0,-4.6,23.4],
        [3999,"cancel",1,1,2]]}}
        """#.utf8))
    let segment = Self.segment(holdsMs: [1_000, 1_000, 1_000, 1_000])
    #expect(
      try OverlayEvents.texts(of: segment, manifest)
        == ["cut; down 11,20; 1 move", "2 moves; up -5,23", nil, "too\nlong; cancel 1,2"])
    #expect(try OverlayEvents.texts(of: segment, .object([:])) == [nil, nil, nil, nil])
  }

  @Test func manyEventsMakeAShortText() throws {
    let events = (0..<50_000).map { #"[\#($0 / 100),"\#($0 % 2 == 0 ? "down" : "up")",0,1,2]"# }.joined(separator: ",")
    let manifest = try JSONParser.parse(Array(#"{"touches":{"width":1,"height":1,"events":[\#(events)]}}"#.utf8))
    let texts = try OverlayEvents.texts(of: Self.segment(holdsMs: [1_000]), manifest)
    #expect(texts.map { $0?.count } == [200])
  }

  @Test func manifestTellsThePartsThatFit() throws {
    let session = try #require(SessionID("walk"))
    let overlay = try #require(Overlay([.events, .clock, .clock]))
    #expect(overlay.parts == [.clock, .events] && Overlay([]) == nil)
    func json(_ width: Int, _ height: Int, _ zone: String? = nil) throws -> String? {
      let sizes: JSONValue = .object([
        "width": .number(width), "height": .number(height), "startMs": .number(Self.startMs),
      ])
      return try overlay.json(of: sizes.setting(zone.map { ["timeZone": .string($0)] } ?? [:]), in: session)?.line
    }
    #expect(try json(375, 667) == #"{"parts":["clock","events"],"timeZone":"UTC"}"#)
    #expect(try json(375, 667, "+01:00") == #"{"parts":["clock","events"],"timeZone":"+01:00"}"#)
    #expect(try json(180, 16) == #"{"parts":["clock"],"timeZone":"UTC"}"#)
    #expect(try json(16, 16) == nil)
    let error = #expect(throws: BadSession.self) { try json(375, 667, "Nowhere/Town") }
    #expect(error?.description.contains("no time zone 'Nowhere/Town'; give --overlay-time-zone") == true)
    let stated = try #require(Overlay([.clock], timeZone: .utc))
    #expect(try stated.zone(of: .object(["timeZone": .string("Nowhere/Town")])) == .utc)
  }
}
