import FileSystem
import Foundation
import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// The promises of every store to a folder that grows.
@Suite struct GrowingFolderContractTests {
  private let scratch: ScratchDirectory
  private let folder: NumberedFolder

  init() throws {
    scratch = try ScratchDirectory()
    folder = try NumberedFolder("yard", in: scratch)
  }

  private static func limits(_ frames: Int) -> Limits {
    var limits = Limits()
    (limits.frames, limits.splitsFolders) = (frames, true)
    return limits
  }

  private func encoder(_ backend: any StoreBackend, frames: Int = 5) throws -> BatchEncoder {
    var options = BatchEncoder.Options()
    options.limits = Self.limits(frames)
    return BatchEncoder(options, publishingTo: try backend.store(), keyFrames: KeyFrameCache())
  }

  /// Publishes the folder in parts of five frames; in reverse order, because threads do not keep theirs.
  private func publish(_ backend: any StoreBackend) throws -> [Receipt] {
    let encoder = try encoder(backend)
    return try encoder.read(folder.path).parts(PartLimits(Self.limits(5))).reversed().flatMap {
      try encoder.publish($0, cancellation: .never)
    }.reversed()
  }

  private func captured(_ backend: any StoreBackend) throws -> [Int64] {
    try backend.segments().filter { $0.key.hasSuffix(".json") }.sorted { $0.key < $1.key }.flatMap { file in
      try JSONParser.parse(file.value).object?["frames"]?.array ?? []
    }.filter { $0.object?["status"]?.string == "captured" }.compactMap { $0.object?["timeMs"]?.integer }
  }

  @Test(arguments: StoreKind.allCases.filter(\.knowsEarlierBatches)) func grownFolderIsContinued(kind: StoreKind) throws
  {
    let backend = try kind.backend()
    var before: [String: [UInt8]] = [:]
    var count = 0
    for more in [3, 1, 1, 1, 8, 2] {
      try folder.add(at: (count..<count + more).map { Int64($0) * 1_000 }, from: count)
      let receipts = try publish(backend)
      #expect(receipts.count(where: \.duplicate) == count / 5)
      #expect(receipts.filter { !$0.duplicate }.reduce(0) { $0 + $1.frames } == more)
      count += more
      let after = try backend.segments()
      for (name, bytes) in before { #expect(after[name] == bytes) }
      before = after
      #expect(try captured(backend) == (0..<count).map { NumberedFolder.startMs + Int64($0) * 1_000 })
    }
    #expect(try publish(backend).allSatisfy(\.duplicate))
    #expect(try backend.segments() == before)
  }

  /// A picture is half written when the folder is encoded, and whole later.
  @Test(arguments: StoreKind.allCases.filter(\.knowsEarlierBatches), [4, 2])
  func pictureThatBecomesWholeIsNoConflict(kind: StoreKind, half: Int) throws {
    let backend = try kind.backend()
    let encoder = try encoder(backend, frames: 100)
    func night(_ range: Range<Int>) throws -> Receipt {
      try folder.add(at: range.map { Int64($0) * 1_000 }, from: range.lowerBound)
      if range.contains(half) {
        try scratch.file("yard/\(NumberedFolder.startMs + Int64(half) * 1_000).png", Array("half".utf8))
      }
      let receipts = try encoder.publish(encoder.read(folder.path), cancellation: .never)
      #expect(receipts.count == 1)
      return receipts[0]
    }
    let first = try night(0..<5)
    #expect(first.frames == 4 && first.refused.count == 1)
    let before = try backend.segments()
    #expect(try night(0..<0).duplicate && backend.segments() == before)
    // It is whole now.
    try folder.add(at: [Int64(half) * 1_000], from: half)
    let second = try night(5..<8)
    let isLast = half == 4
    #expect(second.frames == (isLast ? 4 : 3) && second.refused.count == (isLast ? 0 : 1))
    let after = try backend.segments()
    #expect(before.allSatisfy { after[$0.key] == $0.value })
    let shown = (0..<8).filter { isLast || $0 != half }
    #expect(try captured(backend) == shown.map { NumberedFolder.startMs + Int64($0) * 1_000 })
    #expect(try night(0..<0).duplicate)
  }

  /// A worker that died while it published the new frames is rolled back without those that were there.
  @Test(arguments: StoreKind.allCases.filter(\.knowsEarlierBatches)) func rollingBackKeepsTheBeginning(kind: StoreKind)
    throws
  {
    let backend = try kind.backend()
    try folder.add(at: (0..<3).map { $0 * 1_000 })
    _ = try publish(backend)
    let before = try backend.segments()
    try folder.add(at: [3_000], from: 3)
    let encoder = try encoder(backend)
    let batch = try encoder.read(folder.path)
    #expect(try encoder.rollBack(batch, cancellation: .never) == [])
    #expect(try backend.segments() == before)
    #expect(try encoder.publish(batch, cancellation: .never).map(\.frames) == [1])
    #expect(try encoder.rollBack(batch, cancellation: .never).map(\.duplicate) == [true])
  }

  /// Another worker publishes the folder as it was before, while this one encodes more of it.
  @Test(arguments: StoreKind.allCases.filter(\.knowsEarlierBatches)) func folderIsContinuedBehindAFasterWorker(
    kind: StoreKind
  ) throws {
    let backend = try kind.backend()
    try folder.add(at: (0..<2).map { $0 * 1_000 })
    let (encoder, other) = (try encoder(backend), try encoder(backend))
    let earlier = try other.read(folder.path)
    try folder.add(at: [2_000, 3_000], from: 2)
    var faster: [Receipt] = []
    let whileEncoding = Cancellation { [stage = encoder.stage] in
      if stage.now.stage == .encode, faster.isEmpty {
        faster = (try? other.publish(earlier, cancellation: .never)) ?? []
      }
      return false
    }
    let receipts = try encoder.publish(encoder.read(folder.path), cancellation: whileEncoding)
    #expect(faster.map(\.frames) == [2] && receipts.map(\.frames) == [2])
    #expect(try captured(backend) == (0..<4).map { NumberedFolder.startMs + Int64($0) * 1_000 })
  }

  /// The program's other batches do not grow: a batch that was published with fewer frames is in conflict.
  @Test(arguments: StoreKind.allCases.filter(\.knowsEarlierBatches)) func batchOfARecorderIsNotContinued(
    kind: StoreKind
  ) throws {
    let backend = try kind.backend()
    try folder.add(at: (0..<3).map { $0 * 1_000 })
    let encoder = BatchEncoder(
      BatchEncoder.Options(), publishingTo: try backend.store(), keyFrames: KeyFrameCache())
    _ = try encoder.publish(folder.path)
    try folder.add(at: [3_000], from: 3)
    let error = #expect(throws: BadBatch.self) { try encoder.publish(folder.path) }
    #expect(error?.cause.contains("overlaps") == true)
  }
}
