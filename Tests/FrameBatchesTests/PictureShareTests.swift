import Foundation
import TestSupport
import Testing

@testable import FrameBatches

/// How many pictures of a batch are not shown, before anything is decoded.
@Suite struct PictureShareTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  @Test(arguments: [
    (lost: 0, total: 0, isMost: false), (0, 1, false), (1, 2, false), (2, 3, true), (5, 10, false), (6, 10, true),
    (1, 1, true),
  ]) func moreThanHalfIsMost(lost: Int, total: Int, isMost: Bool) {
    #expect(PictureShare(lost: lost, total: total).isMostlyLost == isMost)
  }

  private func batches(_ names: [String]) throws -> [Batch] {
    let folder = try scratch.directory("batch-\(UUID().uuidString)")
    for name in names {
      let file = URL(fileURLWithPath: folder + "/" + name)
      try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data([0]).write(to: file)
    }
    return try BatchSessions(reading: folder, options: InputOptions(session: "s")).readers.map(\.batch)
  }

  private static let frames = (0..<3).map { "\(1_767_859_512_000 + 1_000 * $0).jpg" }

  /// Junk is no picture, and another form of a frame is none of its own.
  @Test(arguments: [
    (others: ["Thumbs.db", "notes.txt", ".hidden.jpg", "._1767859512000.jpg"], left: 0),
    (["thumbs/1767859512000.jpg", "@eaDir/1767859513000.jpg/SYNOPHOTO_THUMB_S.jpg", "raw/1767859514000.tif"], 0),
    (["day2/a.jpg", "day2/b.jpg", "cover.png"], 3), (["days/1/a.jpg", "days/2/3/b.jpg"], 2),
    (["day2/\(1_767_945_912_000).jpg"], 1),
  ]) func filesBesideFramesCountIfTheyArePictures(others: [String], left: Int) throws {
    let batch = try #require(try batches(Self.frames + others).first)
    #expect(batch.leftOut.ofInput == left)
    #expect(PictureShare.all(of: batch, hidden: 0)[0] == PictureShare(lost: left, total: 3 + left))
  }

  /// Pictures with other names belong to none of several sessions: they count beside the frames of all.
  @Test func straysCountBesideTheFramesOfAllSessions() throws {
    let names = ["1767859512000_m1.jpg"] + (0..<4).map { "\(1_767_859_512_000 + 1_000 * $0)_m2.jpg" }
    let batches = try batches(names + ["a.jpg", "b.jpg"])
    let shares = batches.map { PictureShare.all(of: $0, hidden: 0)[0] }
    #expect(shares == [PictureShare(lost: 2, total: 7), PictureShare(lost: 0, total: 4)])
  }

  /// A folder that is split counts as a whole in each of its parts.
  @Test func partOfAFolderCountsBesideTheOthers() throws {
    let folder = try scratch.directory("long")
    for index in 0..<6 { try scratch.file("long/\(1_767_859_512_000 + 1_000 * index).jpg", [0]) }
    for index in 0..<3 { try scratch.file("long/stray\(index).jpg", [0]) }
    var limits = Limits()
    (limits.frames, limits.splitsFolders) = (4, true)
    let parts = try BatchSessions(reading: folder, limits: limits).parts(PartLimits(limits)).flatMap(\.readers)
    #expect(
      parts.map { PictureShare.all(of: $0.batch, hidden: 0)[0] }
        == [PictureShare](repeating: PictureShare(lost: 3, total: 9), count: 2))
  }
}
