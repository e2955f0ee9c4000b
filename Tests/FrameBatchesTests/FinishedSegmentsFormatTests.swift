import Foundation
import TestSupport
import Testing

@testable import FrameBatches

/// Which batches are finished segments.
@Suite struct FinishedSegmentsFormatTests {
  private let scratch: ScratchDirectory
  private static let start = SegmentFolder.startMs
  private static let mp4: [UInt8] = [0, 0, 0, 24] + Array("ftypisom".utf8)

  init() throws { scratch = try ScratchDirectory() }

  /// Reads a folder, or a zip of its files.
  private func read(_ files: [String: [UInt8]], asZip: Bool, _ limits: Limits = Limits()) throws -> BatchReader {
    guard asZip else {
      let folder = try scratch.directory("batch")
      for (name, bytes) in files { try scratch.file("batch/" + name, bytes) }
      return try BatchReader(reading: folder, limits: limits)
    }
    let entries = files.sorted { $0.key < $1.key }.map { ZipArchive.Entry($0.key, $0.value) }
    try scratch.file("batch.zip", ZipArchive(entries).bytes)
    return try BatchReader(reading: scratch.path("batch.zip"), limits: limits)
  }

  @Test(arguments: [false, true]) func mostNamesDecide(asZip: Bool) throws {
    let event = Array(SegmentFolder.event(7, atMs: 5_000).utf8)
    let videos = try read(
      [
        "\(Self.start).mov": Self.mp4, "7.mp4": Self.mp4, "other.mp4": Self.mp4, "events.json": event,
        "poster.jpg": [1],
      ],
      asZip: asZip)
    #expect(videos.format == "finished segments")
    #expect(videos.batch.frames.map(\.source) == ["\(Self.start).mov", "7.mp4"])
    #expect(videos.batch.frames.map { $0.timeMs - Self.start } == [0, 5_000])
    #expect(videos.batch.videos?.facts["7.mp4"]?.event?.segmentID == 7)
    #expect(videos.batch.refused.map(\.source) == ["other.mp4", "poster.jpg"])
  }

  /// MP4s beside as many pictures are not even unpacked.
  @Test(arguments: [false, true]) func recordingsBesidePicturesAreIgnored(asZip: Bool) throws {
    var limits = Limits()
    limits.unpackedBytes = 100
    let pictures = try read(
      ["\(Self.start).jpg": [1], "\(Self.start + 1).mp4": Self.mp4 + [UInt8](repeating: 0, count: 200)], asZip: asZip,
      limits)
    #expect(pictures.format == "plain" && pictures.batch.frames.count == 1 && pictures.batch.refused.isEmpty)
  }

  @Test func eventsOfAllFilesHaveALimit() throws {
    var limits = Limits()
    limits.unpackedBytes = 300
    let event = Array(SegmentFolder.event(7, atMs: 5_000).utf8)
    let bad = #expect(throws: BadBatch.self) {
      try read(["7.mp4": Self.mp4, "a.json": event, "b.json": event], asZip: false, limits)
    }
    #expect(bad?.cause == "more than 300 bytes of events")
  }
}
