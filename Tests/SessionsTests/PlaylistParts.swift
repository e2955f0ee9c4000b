import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import Sessions

// The playlists of PlaylistChapterTests.
extension PlaylistChapterTests {
  static let layout = HLSLayout(bytes: 100, keyFrame: 10..<30, width: 64, height: 48, codec: "avc1.4D400B")

  typealias Part = (segment: PublishedSegment, marks: SegmentMarks)

  /// - Parameters:
  ///   - pages, notes, presses: milliseconds from the segment's start.
  func part(
    _ fromMs: Int64, _ untilMs: Int64, gapAfterMs: Int64 = 0, pages: [Int64] = [], notes: [Int64] = [],
    presses: [Int64] = []
  ) throws -> Part {
    let segment = PublishedSegment.made(
      Self.start + fromMs, Self.start + untilMs, batch: "\(fromMs)", gapAfterMs: gapAfterMs)
    let frames = notes.map { #"{"timeMs":\#(segment.startMs + $0),"note":"note \#($0)"}"# }
    let opened = pages.enumerated().map { #"[\#($1),"page \#($0)"]"# }
    let events = presses.map { #"[\#($0),"down",0,\#($0),1]"# }
    let manifest = """
      {"frames":[\(frames.joined(separator: ","))],"pages":[\(opened.joined(separator: ","))],
       "touches":{"width":64,"height":48,"events":[\(events.joined(separator: ","))]}}
      """
    return (segment, SegmentMarks(try JSONParser.parse(Array(manifest.utf8)), of: segment))
  }

  func entry(_ segment: PublishedSegment, before next: PublishedSegment?) -> HLSPlaylist.Entry {
    let endMs = next.map { segment.gap(before: $0)?.startMs ?? $0.startMs } ?? segment.endMs
    return HLSPlaylist.Entry(
      file: "segment-\(segment.startMs)-abcdef01.m4s", initialization: "init-64x48-aaaaaaaa.mp4",
      startMs: segment.startMs, endMs: endMs, layout: Self.layout)
  }

  /// - Parameter isReread: whether the playlist is read back before each segment, as workers do.
  func playlist(_ parts: [Part], isReread: Bool = false) throws -> String {
    var playlist = HLSPlaylist(of: session, .live, startMs: parts[0].segment.startMs, maximumMs: 5_000)
    for (index, part) in parts.enumerated() {
      if isReread, index > 0 {
        let text = playlist.text
        playlist = try #require(HLSPlaylist(of: session, continuing: Array(text.utf8)))
        #expect(playlist.text == text)
      }
      let before = index > 0 ? parts[index - 1].segment : nil
      let next = index + 1 < parts.count ? parts[index + 1].segment : nil
      playlist.append(
        entry(part.segment, before: next), part.marks, behind: before?.gap(before: part.segment))
    }
    return playlist.text
  }

  func ranges(_ text: String) -> [String] {
    text.split(separator: "\n").filter { $0.hasPrefix("#EXT-X-DATERANGE:") }.map(String.init)
  }
}
