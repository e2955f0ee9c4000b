import Foundation
import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// The captions of live playlists: they agree with the video's, and no listed file changes.
@Suite struct HLSCaptionTests {
  private static let start = Int(GrowingPackage.startMs)

  private let package: GrowingPackage

  init() throws { package = try GrowingPackage() }

  private func caption(_ fromMs: Int, _ untilMs: Int, _ text: String) -> String {
    "\(Self.start + fromMs)–\(Self.start + untilMs) \(text)"
  }

  /// Returns a directory with the objects of the session.
  private func copied() throws -> String {
    let folder = try package.scratch.directory("copy-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder + "/hls", withIntermediateDirectories: true)
    for key in package.objects.keys where key.hasPrefix("output/walk/") {
      let path = folder + "/" + key.dropFirst("output/walk/".count)
      try Data(package.objects[key] ?? []).write(to: URL(fileURLWithPath: path))
    }
    return folder + "/hls"
  }

  private func text(_ directory: String, _ file: String = "session.m3u8") throws -> String {
    try String(contentsOfFile: directory + "/" + file, encoding: .utf8)
  }

  /// The places where a playlist grows.
  enum Place: CaseIterable { case directory, store, packs }

  @Test(arguments: Place.allCases) func captionsGrowWithTheVideo(place: Place) throws {
    let (views, store) = (package.views(), try package.store(layout: place == .packs ? .packed : .plain))
    func publish(_ seconds: Range<Int>, steps: KeyValuePairs<Int, String> = [:]) throws -> String {
      guard place == .directory else {
        try package.publish(seconds, steps: steps, store)
        return try copied()
      }
      try package.publish(seconds, steps: steps, views)
      return package.output + "/walk/hls"
    }
    var seen: [String] = []
    var files: [String: Data] = [:]
    /// Checks that listed entries and their files are as they were, and returns the captions.
    func captions(_ directory: String) throws -> [String] {
      let captions = try Conformance.captions(ofPlaylistsIn: directory)
      let lines = try text(directory, "captions.m3u8").components(separatedBy: "\n").dropLast()
      #expect(lines.starts(with: seen))
      seen = Array(lines)
      for file in Set(lines.filter { !$0.hasPrefix("#") }) {
        let data = try Data(contentsOf: URL(fileURLWithPath: directory + "/" + file))
        #expect(files[file] ?? data == data, "\(file)")
        files[file] = data
      }
      return captions
    }
    // Before the first label the playlists are as ever.
    var directory = try publish(0..<10)
    #expect(try Conformance.captions(ofPlaylistsIn: directory) == [])
    #expect(try !FileManager.default.contentsOfDirectory(atPath: directory).contains { $0.hasPrefix("captions") })
    directory = try publish(10..<20, steps: [10_500: "a", 11_000: "b", 14_000: "late", 19_500: "goes on"])
    let first = [
      caption(10_500, 11_000, "a"), caption(11_000, 14_000, "b"), caption(14_000, 16_000, "late"),
      caption(19_500, 21_500, "goes on"),
    ]
    #expect(try captions(directory) == first)
    directory = try publish(20..<30, steps: [12_000: "too late", 21_000: "c", 29_999: "last"])
    let second = [caption(21_000, 25_000, "c"), caption(29_999, 31_999, "last")]
    #expect(try captions(directory) == first + second)
    directory = try publish(40..<42)
    #expect(try captions(directory) == first + second)
    #expect(try text(directory).contains("#EXT-X-GAP\n"))
    let named = HLSPlaylist.files(in: Array(try text(directory).utf8))
    #expect(named.filter { $0.hasPrefix("captions-") }.count == 5)
    #expect(named.allSatisfy { FileManager.default.fileExists(atPath: directory + "/" + $0) })
  }

  @Test func removedSegmentsTakeTheirCaptionsAndPlayersKeepTheirPlaylist() throws {
    let views = package.views()
    try package.publish(0..<20, steps: [500: "a", 4_000: "b"], views)
    let directory = package.output + "/walk/hls"
    let whole = Array(try text(directory).utf8)
    let old = HLSPlaylist.files(in: whole).filter { $0.hasPrefix("captions-1") }
    #expect(old.count == 2)
    let slid = try #require(HLSPlaylist.sliding(whole, to: GrowingPackage.startMs + 10_000))
    #expect(slid.files.isSuperset(of: old) && !slid.files.contains(HLSCaptionSegment.emptyFile))
    let left = try #require(HLSViews(of: slid.text).captions.map { String(decoding: $0, as: UTF8.self) })
    #expect(left.components(separatedBy: "captions-none.vtt\n").count == 3 && !left.contains("captions-1"))
    #expect(HLSPlaylist.files(in: slid.text).contains(HLSCaptionSegment.emptyFile))
    // Once more, and after a rebuild.
    let again = try #require(HLSPlaylist.sliding(slid.text, to: GrowingPackage.startMs + 15_000))
    #expect(HLSViews(of: again.text).captions != nil)
    var playlist = try #require(HLSPlaylist(of: package.session, continuing: again.text))
    playlist.text = playlist.text.replacing("\(HLSCaptions.keptMark)\n", with: "")
    #expect(HLSViews(of: Array(playlist.text.utf8)).captions == nil)
    playlist.keepCaptions(of: again.text)
    #expect(playlist.text == String(decoding: again.text, as: UTF8.self))
    #expect(old.allSatisfy(SupersededFiles.canList) && SupersededFiles.canList(HLSCaptionSegment.emptyFile))
    for name in ["captions-.vtt", "captions.m3u8", "captions-1767859512340-abcdef01.mp4", "captions-1-abcdef01.vtt"] {
      #expect(!SupersededFiles.canList(name), "\(name)")
    }
  }

  /// A playlist that is read back before each segment has the same captions as one that is made at once.
  @Test(arguments: 1...40) func extendedPlaylistEqualsOneThatIsMadeAtOnce(seed: Int) throws {
    var random = Random(seed: seed)
    var parts: [PlaylistChapterTests.Part] = []
    var now: Int64 = 0
    for _ in 0..<random.int(3...20) {
      let gapMs = random.once(in: 4) ? random.int(500...9_000) : 0
      let segment = PublishedSegment.made(
        GrowingPackage.startMs + now, GrowingPackage.startMs + now + 5_000, batch: "\(now)", gapAfterMs: gapMs)
      let labels = (0..<random.int(0...(random.once(in: 9) ? 90 : 4))).map { _ -> JSONValue in
        let time = segment.startMs + random.int(-4_000...9_000)
        let kind = random.once(in: 2) ? "caption" : "step"
        return .object([
          "timeMs": .number(time), "endMs": .number(time + random.int(0...20_000)), "kind": .string(kind),
          "text": .string("line \(random.int(0...9))\n\"x\" \\ #EXT"),
        ])
      }.sorted { ($0.object?["timeMs"]?.integer ?? 0) < ($1.object?["timeMs"]?.integer ?? 0) }
      let manifest = JSONValue.object(labels.isEmpty ? [:] : ["labels": .array(labels)])
      parts.append((segment, SegmentMarks(manifest, of: segment)))
      now += 5_000 + gapMs
    }
    let maker = try PlaylistChapterTests()
    let text = try maker.playlist(parts)
    #expect(try maker.playlist(parts, isReread: true) == text)
    #expect(HLSCaptions.areIn(Array(text.utf8)) == text.contains("\n# cues "))
  }

  @Test(arguments: [
    (ms: Int64(0), ticks: "0", clock: "00:00:00.000"), (5_000, "450000", "00:00:05.000"),
    // The time of MPEG-2 begins anew after 26.5 hours, and a clock has more than two digits after 100.
    (95_443_718, "28", "26:30:43.718"), (400_000_000, "1640261632", "111:06:40.000"),
  ])
  func mapTellsTheTimeOfTheFragment(ms: Int64, ticks: String, clock: String) {
    let caption = Caption(unix: 999_000..<1_002_000, text: "a")
    let text = String(
      decoding: HLSCaptionSegment(captions: [caption], startMs: 1_000_000, mediaMs: ms).bytes, as: UTF8.self)
    #expect(text.hasPrefix("WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:\(ticks),LOCAL:\(clock)\n\n"))
    #expect(text.contains("\(CueTime.clock(max(0, ms - 1_000))) --> \(CueTime.clock(ms + 2_000))\na\n"))
  }
}
