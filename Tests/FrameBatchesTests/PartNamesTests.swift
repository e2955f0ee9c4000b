import Testing

@testable import FrameBatches

/// Hints on batches whose names look like parts of one session.
@Suite struct PartNamesTests {
  /// The names of batches, and the pattern in the hint. Each is a session of its own.
  @Test(
    arguments: [
      (["s01-0.tar.gz", "s01-1.tar.gz"], "{session}-{part}"), (["s01-1", "s01-2", "s01-3"], "{session}-{part}"),
      (["front-door_0.tar", "front-door_1.tar", "lobby.tar"], "{session}_{part}"),
      (["a.000.zip", "a.001.zip"], "{session}.{part}"), (["s01-01.tar", "s01-02.tar"], "{session}-{part}"),
      // One batch, other sessions, days, devices, times.
      (["s01-0.tar.gz"], nil), (["s01-0.tar", "s02-1.tar"], nil), (["2026-11-28.tar", "2026-11-29.tar"], nil),
      (["kiosk-7.tar", "kiosk-8.tar"], nil), (["s-1767859512340", "s-1767859572340"], nil),
      (["s0.tar", "s1.tar"], nil),
      // The same part twice, and a session with no name.
      (["s01-1.tar", "s01-01.tar"], nil), (["-0.tar", "-1.tar"], nil),
    ] as [([String], String?)])
  func firstPartsOfASessionGetTheirPattern(batches: [String], pattern: String?) throws {
    var parts = PartNames()
    for batch in batches {
      if let session = SessionID(OpenedBatch.stem(of: batch)) { parts.add(batch, of: session) }
    }
    let hint = parts.hint
    #expect((hint == nil) == (pattern == nil), "\(hint ?? "")")
    if let pattern { #expect(hint?.hasSuffix("use --session-from '\(pattern)'") ?? false, "\(hint ?? "")") }
  }

  /// A batch that names its session itself needs no pattern.
  @Test func batchesOfNamedSessionsGetNoHint() throws {
    var parts = PartNames()
    for batch in ["s01-0.tar", "s01-1.tar"] { parts.add(batch, of: try #require(SessionID("s01"))) }
    #expect(parts.hint == nil)
  }
}
