import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import Films
@testable import Reencoding

/// Which segments an archive joins, and the manifest of those. `ArchiveTests` has their videos.
@Suite struct ArchiveGroupTests {
  private typealias Frame = PublishedSegment.Frame

  /// Returns segments with manifests, of one frame each unless `showing` says more.
  private func groups(
    _ segments: [PublishedSegment], _ members: [Int: [String: JSONValue]] = [:]
  ) -> [ArchiveGroup] {
    ArchiveGroup.all(
      segments.enumerated().map { index, segment in
        let frames = segment.frames.enumerated().map { number, frame in
          JSONValue.object([
            "timeMs": .number(frame.timeMs), "holdMs": .number(frame.holdMs),
            "source": .string("\(frame.timeMs).jpg"), "status": .string(frame.isCaptured ? "captured" : "continued"),
          ])
        }
        let own: [String: JSONValue] = [
          "batch": .string(segment.batch), "frames": .array(frames), "startMs": .number(segment.startMs),
          "manifestSha256": .string("\(index)"), "final": .bool(segment.isFinal),
          "intervalMs": .number(segment.intervalMs),
        ]
        return (segment, JSONValue.object(own).setting(members[index] ?? [:]))
      }, haveEqualKeys: { _, _ in false })
  }

  private func ranges(_ groups: [ArchiveGroup]) -> [[Int64]] { groups.map { [$0.startMs, $0.endMs, $0.gapAfterMs] } }

  @Test func tenMinutesAreTheLongest() {
    let segments = (0..<130).map { PublishedSegment.made(5_000 * $0, 5_000 * ($0 + 1), part: Int($0) + 1, parts: 130) }
    #expect(ranges(groups(segments)) == [[0, 600_000, 0], [600_000, 650_000, 0]])
    // A longer one stays alone.
    let long = [PublishedSegment.made(0, 700_000, part: 1, parts: 2), .made(700_000, 705_000, part: 2, parts: 2)]
    #expect(ranges(groups(long)) == [[0, 700_000, 0], [700_000, 705_000, 0]])
  }

  @Test func gapsDivideAndSeamsClose() {
    // Batches meet early, late by less than half an interval, and after a gap.
    let segments = [
      PublishedSegment.made(0, 5_000, batch: "a"), .made(4_900, 10_000, batch: "b"), .made(10_200, 15_000, batch: "c"),
      .made(17_000, 20_000, batch: "d", gapAfterMs: 700),
    ]
    let groups = groups(segments)
    #expect(ranges(groups) == [[0, 15_000, 2_000], [17_000, 20_000, 700]])
    #expect(groups[0].parts.map(\.endMs) == [4_900, 10_200, 15_000])
    // The same pieces as those of a film.
    let film = StitchPlan(segments, gaps: .hold)
    #expect(film.parts.map { $0.segment.startMs } == [0, 4_900, 10_200, 17_000])
  }

  @Test func otherSizesZonesAndPointersDivide() {
    let segments = (0..<3).map { PublishedSegment.made(5_000 * $0, 5_000 * ($0 + 1), part: Int($0) + 1, parts: 3) }
    let zone: [String: JSONValue] = ["timeZone": .string("Europe/Berlin")]
    #expect(groups(segments, [1: zone]).count == 3)
    #expect(groups(segments, [0: zone, 1: zone, 2: zone]).count == 1)
    func touches(_ width: Int64) -> [String: JSONValue] {
      [
        "touches": .object([
          "width": .number(width), "height": .number(9),
          "events": .array([.array([.number(10), .string("down"), .number(0), .number(1), .number(2)])]),
        ])
      ]
    }
    #expect(groups(segments, [0: touches(5), 2: touches(6)]).count == 2)
    #expect(groups(segments, [0: touches(5), 2: touches(5)]).count == 1)
  }

  @Test func manifestKeepsFramesEventsAndPages() throws {
    let segments = [
      PublishedSegment.made(1_000, 6_000, batch: "a", final: false).showing([
        Frame(timeMs: 1_000, holdMs: 2_000, isCaptured: true), Frame(timeMs: 3_000, holdMs: 3_000, isCaptured: true),
      ]),
      PublishedSegment.made(6_000, 11_000, batch: "b", final: true).showing([
        Frame(timeMs: 3_000, holdMs: 1_000, isCaptured: false), Frame(timeMs: 7_000, holdMs: 4_000, isCaptured: true),
      ]),
    ]
    let event = JSONValue.array([.number(1_500), .string("down"), .number(0), .number(1), .number(2)])
    let touches = JSONValue.object(["width": .number(5), "height": .number(9), "events": .array([event])])
    let page = JSONValue.array([.array([.number(20), .string("/cart")])])
    let refused = JSONValue.array([.object(["source": .string("x.jpg"), "reason": .string("broken")])])
    let groups = groups(
      segments,
      [
        0: ["metadata": .object(["n": .number(1)])],
        1: ["touches": touches, SegmentPages.key: page, "refused": refused, "metadata": .object(["n": .number(2)])],
      ])
    #expect(groups.count == 1)
    let manifest = try groups[0].manifest(groups[0].frames(), digest: "d", number: 1, of: 1).object ?? [:]
    let frames = manifest["frames"]?.array ?? []
    #expect(frames.map { $0.object?["timeMs"]?.integer } == [1_000, 3_000, 7_000])
    #expect(frames.map { $0.object?["holdMs"]?.integer } == [2_000, 4_000, 4_000])
    let events = manifest["touches"]?.object?["events"]?.array?.map { $0.array?.first?.integer }
    #expect(events == [6_500])
    #expect(manifest[SegmentPages.key]?.array?.map { $0.array?.first?.integer } == [5_020])
    #expect(manifest["refused"] == refused && manifest["final"]?.bool == true)
    #expect(manifest["endMs"]?.integer == 11_000 && manifest["durationMs"]?.integer == 10_000)
    let parts = manifest[ArchiveGroup.key]?.array ?? []
    #expect(parts.map { $0.object?["batch"]?.string } == ["a", "b"])
    #expect(parts.map { $0.object?["metadata"]?.object?["n"]?.integer } == [1, 2])
  }

  @Test func pictureThatContinuesAnotherOneIsNotJoined() {
    let segments = [
      PublishedSegment.made(1_000, 6_000, part: 1, parts: 2),
      PublishedSegment.made(6_000, 11_000, part: 2, parts: 2).showing([
        Frame(timeMs: 500, holdMs: 5_000, isCaptured: false)
      ]),
    ]
    #expect(groups(segments).count == 2)
  }
}
