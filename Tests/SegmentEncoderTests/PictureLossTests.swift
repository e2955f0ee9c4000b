import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// Batches of which most pictures cannot be shown.
@Suite struct PictureLossTests {
  private static let startMs = 1_767_859_512_000
  private let scratch: ScratchDirectory
  private let output: OutputDirectory
  private let encoder: BatchEncoder

  init() throws {
    scratch = try ScratchDirectory()
    output = try OutputDirectory(scratch.path("output"))
    encoder = BatchEncoder(output: output)
  }

  private static func image(_ number: Int) throws -> [UInt8] {
    try Fixture("exact-1fps").bytes(String(format: "%04d.jpg", number))
  }

  private func batch(_ files: [String: [UInt8]]) throws -> String {
    let path = try scratch.directory("hall@\(UUID().uuidString)")
    for (name, bytes) in files { try scratch.file("\(lastComponent(of: path))/\(name)", bytes) }
    return path
  }

  private func frames(_ range: Range<Int>, suffix: String = "") throws -> [String: [UInt8]] {
    try Dictionary(
      uniqueKeysWithValues: range.map { ("\(Self.startMs + 1_000 * $0)\(suffix).jpg", try Self.image($0)) })
  }

  private func publish(_ path: String, accepting: Bool = false) throws -> [Receipt] {
    try encoder.publish(encoder.read(path), isAccepted: { _ in accepting }, cancellation: .never)
  }

  private func published() -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: output.path)) ?? []).filter { !$0.hasPrefix(".") }.sorted()
  }

  /// - Returns: the error of a batch of which nothing is published.
  private func refusal(_ path: String) throws -> BadBatch {
    let error = #expect(throws: BadBatch.self) { try publish(path) }
    #expect(published() == [])
    return try #require(error)
  }

  @Test func straysThatOutnumberTheFramesRefuseTheBatchUntilThatIsAccepted() throws {
    let strays = try Dictionary(uniqueKeysWithValues: (0..<3).map { ("shot \($0).jpg", try Self.image($0)) })
    let path = try batch(frames(0..<2).merging(strays) { $1 })
    let bad = try refusal(path)
    #expect(
      bad.description.contains("3 of 5 pictures would not be shown; 3 of these, the first shot 0.jpg: "), "\(bad)")
    #expect(bad.marks.count == 1 && !bad.advice.isEmpty)
    #expect(try publish(path, accepting: true).map(\.frames) == [2])
    // The strays would go with a batch that is a duplicate, too.
    #expect(throws: BadBatch.self) { try publish(path) }
  }

  @Test func halfOfTheFramesIsEnough() throws {
    let broken = Array("no image".utf8)
    let good = try frames(0..<2)
    let half = try batch(
      good.merging(["\(Self.startMs + 5_000).jpg": broken, "\(Self.startMs + 6_000).jpg": broken]) { $1 })
    #expect(try publish(half).map(\.frames) == [2])
  }

  @Test func brokenFramesRefuseTheBatch() throws {
    let broken = try frames(1..<4).mapValues { _ in Array("no image".utf8) }
    let bad = try refusal(batch(frames(0..<1).merging(broken) { $1 }))
    #expect(
      bad.cause.hasPrefix(
        "3 of 4 pictures would not be shown; 3 of these, the first \(Self.startMs + 1_000).jpg: decode"))
  }

  /// A recorder that writes three pictures a second, with times in whole seconds.
  @Test func differentPicturesOfOneInstantRefuseTheBatch() throws {
    let list = (0..<12).map { #"{"file":"\#($0).jpg","timeMs":\#(Self.startMs + $0 / 3 * 1_000)}"# }
    var files = try Dictionary(uniqueKeysWithValues: (0..<12).map { ("\($0).jpg", try Self.image($0)) })
    files["batch.json"] = Array(#"{"version":1,"session":"s","frames":[\#(list.joined(separator: ","))]}"#.utf8)
    let bad = try refusal(batch(files))
    #expect(bad.cause.hasPrefix("8 of 12 pictures would not be shown; 8 of these"), "\(bad)")
  }

  /// Thumbnails, other formats and copies of a picture are no pictures of their own.
  @Test func companionsOfShownPicturesAreNotMissed() throws {
    var files = try frames(0..<2)
    for (name, bytes) in files {
      let stem = name.dropLast(4)
      for other in ["small/\(name)", "large/\(name)", "\(stem).jpeg"] { files[other] = try Self.image(11) }
      files["other/\(stem)"] = bytes
    }
    let path = try scratch.directory("companions")
    for (name, bytes) in files {
      _ = try scratch.directory("companions/" + DurableFile.parentDirectory(of: name))
      try scratch.file("companions/" + name, bytes)
    }
    #expect(try publish(path).map(\.frames) == [2])
  }

  /// The others are published, and the batch is not finished.
  @Test func sessionThatLosesMostOfItsPicturesIsRefusedAmongOthers() throws {
    let broken = try frames(1..<3, suffix: "_m2").mapValues { _ in Array("no image".utf8) }
    let path = try batch(
      frames(0..<2, suffix: "_m1").merging(frames(0..<1, suffix: "_m2")) { $1 }.merging(broken) { $1 })
    for isDuplicate in [false, true] {
      let receipts = try publish(path)
      #expect(receipts.map(\.duplicate) == [isDuplicate])
      #expect(receipts[0].refusedSessions.map(\.session) == ["hall.m2"])
      #expect(published() == ["hall.m1"])
    }
    let accepted = try publish(path, accepting: true)
    #expect(accepted.map(\.frames) == [2, 1] && accepted[0].refusedSessions.isEmpty)
  }

  /// The mark of a decision is that of a content, wherever it lies.
  @Test func acceptanceIsForOneContent() throws {
    let stray = ["a.jpg": try Self.image(0), "b.jpg": try Self.image(1)]
    let one = try refusal(batch(frames(0..<1).merging(stray) { $1 })).marks
    #expect(try refusal(batch(frames(0..<1).merging(stray) { $1 })).marks == one)
    #expect(try refusal(batch(frames(1..<2).merging(stray) { $1 })).marks != one)
    #expect(try refusal(batch(frames(0..<1).merging(["a.jpg": [], "c.jpg": []]) { $1 })).marks != one)
  }
}
