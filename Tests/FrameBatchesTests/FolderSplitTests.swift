import Foundation
import TestSupport
import Testing

@testable import FrameBatches

@Suite struct FolderSplitTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private static func frames(at instants: [Int64]) -> [Frame] {
    instants.map { Frame(source: "\($0)", path: "\($0)", timeMs: $0) }
  }

  private static func limits(
    frames: Int = 1_000, segments: Int = 1_000, sizes: [PartLimits.Size] = []
  ) -> PartLimits {
    var limits = Limits()
    (limits.frames, limits.segments) = (frames, segments)
    return PartLimits(limits, sizes: sizes)
  }

  @Test(
    arguments: [
      // The frames of one instant stay together.
      ([1, 2, 3, 4, 5, 6, 7], 3, [0..<3, 3..<6, 6..<7]), ([1, 2, 3], 3, [0..<3]),
      ([1, 2, 2, 3, 3, 3], 2, [0..<1, 1..<3, 3..<6]),
      ([1, 1, 1, 2], 2, [0..<3, 3..<4]), ([1], 1, [0..<1]), ([1, 2, 2], 2, [0..<1, 1..<3]),
    ] as [([Int64], Int, [Range<Int>])])
  func cutsFollowTheFrames(instants: [Int64], limit: Int, ranges: [Range<Int>]) {
    let frames = Self.frames(at: instants)
    #expect(Self.limits(frames: limit).ranges(of: frames, .interval) == ranges)
  }

  @Test func cutsFollowTheSegments() {
    // Holds of 12 s are three segments; at an interval, at most 5 s of them are shown, in two.
    let frames = Self.frames(at: (0..<8).map { $0 * 12_000 })
    #expect(Self.limits(segments: 7).ranges(of: frames, .onChange) == [0..<3, 3..<6, 6..<8])
    #expect(Self.limits(segments: 7).ranges(of: frames, .interval) == [0..<4, 4..<8])
    // The last hold does not count.
    #expect(Self.limits(segments: 1).ranges(of: Self.frames(at: [0, 1_000_000]), .onChange) == [0..<1, 1..<2])
  }

  @Test func cutsFollowTheSizes() {
    let size = PartLimits.Size(most: 10) { Int($0.timeMs) }
    let frames = Self.frames(at: [3, 4, 5, 11, 12])
    #expect(Self.limits(sizes: [size]).ranges(of: frames, .interval) == [0..<2, 2..<3, 3..<4, 4..<5])
  }

  /// Of a folder that has grown, each full part is as before, and the last one begins where it did.
  @Test func cutsDoNotMoveWhenTheFolderGrows() {
    var random = Random(seed: 48)
    for _ in 0..<300 {
      var now: Int64 = 0
      let instants = (0..<60).map { _ -> Int64 in
        now += random.once(in: 6) ? 0 : random.int(1...40_000)
        return now
      }
      let size = PartLimits.Size(most: 50) { Int($0.timeMs % 20) }
      let limits = Self.limits(frames: Int(random.int(2...12)), segments: Int(random.int(5...40)), sizes: [size])
      let capture = random.once(in: 2) ? Batch.Capture.onChange : .interval
      let whole = limits.ranges(of: Self.frames(at: instants), capture)
      #expect(whole.first?.lowerBound == 0 && whole.last?.upperBound == instants.count)
      #expect(zip(whole, whole.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound && !$0.isEmpty })
      for count in 1..<instants.count where instants[count] > instants[count - 1] {
        let earlier = limits.ranges(of: Self.frames(at: Array(instants[..<count])), capture)
        #expect(Array(whole.prefix(earlier.count - 1)) == earlier.dropLast())
        #expect(whole[earlier.count - 1].lowerBound == earlier.last?.lowerBound)
        #expect(whole[earlier.count - 1].upperBound >= count)
      }
    }
  }

  // MARK: folders

  private func folder(_ count: Int) throws -> String {
    let path = try scratch.directory("yard-\(count)")
    for number in 0..<count { try scratch.file("yard-\(count)/\(1_767_859_512_000 + 1_000 * number).jpg", [0xFF]) }
    try scratch.file("yard-\(count)/notes.jpg", [1])
    return path
  }

  private static func splitting(frames: Int) -> Limits {
    var limits = Limits()
    (limits.frames, limits.splitsFolders) = (frames, true)
    return limits
  }

  @Test func partsMeet() throws {
    let limits = Self.splitting(frames: 4)
    var options = InputOptions(session: "yard")
    options.isFinal = true
    let whole = try BatchSessions(reading: folder(10), options: options, limits: limits)
    let parts = try whole.parts(PartLimits(limits)).map { $0.readers[0].batch }
    #expect(parts.map(\.frames.count) == [4, 4, 2])
    #expect(parts.map(\.name) == [0, 4, 8].map { "yard@\(1_767_859_512_000 + 1_000 * $0)" })
    #expect(parts.map(\.endMs) == [4, 8, 10].map { 1_767_859_512_000 + 1_000 * $0 })
    #expect(parts.map(\.isFinal) == [false, false, true] && parts.map(\.refused.count) == [0, 0, 1])
    let shown = try #require(whole.readers[0].batch.folder?.shownMs)
    #expect(shown == 1_767_859_512_000..<1_767_859_522_000)
    #expect(
      parts.allSatisfy { $0.folder?.shownMs == shown && $0.intervalMs == 1_000 && $0.session.description == "yard" })
    // A folder within the limits is one batch, under its own name.
    let one = try BatchSessions(reading: folder(4), limits: limits).parts(PartLimits(limits))
    #expect(one.map(\.readers[0].batch.name) == ["yard-4"])
  }

  @Test func onlyTheReaderThatSplitsTakesMore() throws {
    let path = try folder(5)
    var limits = Limits()
    limits.frames = 4
    let refusal = #expect(throws: BadBatch.self) { try BatchSessions(reading: path, limits: limits) }
    #expect(refusal?.advice == "raise the limit with --limit frames=5, or send it with enqueue, which splits it")
    limits.entries = 4
    let crowded = #expect(throws: BadBatch.self) { try BatchSessions(reading: path, limits: limits) }
    #expect(crowded?.advice == "raise the limit with --limit entries=NUMBER, or send it with enqueue, which splits it")
    limits.splitsFolders = true
    #expect(try BatchSessions(reading: path, limits: limits).parts(PartLimits(limits)).count == 2)
    // Without the flag no batch can grow.
    #expect(try BatchSessions(reading: path).readers[0].batch.folder == nil)
  }

  @Test func moreFilesAtOneInstantThanTheLimitAreRefused() throws {
    let path = try scratch.directory("crowd")
    for number in 0..<5 { try scratch.file("crowd/1767859512000.\(number)", [0xFF]) }
    try scratch.file("crowd/1767859513000.jpg", [0xFF])
    let limits = Self.splitting(frames: 4)
    let batch = try BatchSessions(reading: path, limits: limits)
    let refusal = #expect(throws: BadBatch.self) { try batch.parts(PartLimits(limits)) }
    #expect(refusal?.cause == "5 frames at one instant, 1767859512000, more than the limit of 4")
    #expect(refusal?.advice == "raise the limit with --limit frames=5, or split the batch")
  }

  @Test func describedPartIsReadAsItWas() throws {
    let limits = Self.splitting(frames: 4)
    let parts = try BatchSessions(reading: folder(10), options: InputOptions(session: "yard"), limits: limits)
      .parts(PartLimits(limits))
    for part in parts {
      let reader = part.readers[0]
      let copy = try scratch.directory("copy-\(reader.batch.frames[0].timeMs)")
      for frame in reader.batch.frames {
        try FileManager.default.copyItem(
          atPath: scratch.path("yard-10/" + frame.paths[0]), toPath: copy + "/" + frame.paths[0])
      }
      try Data(NativeFormat.description(of: reader.batch)).write(to: URL(fileURLWithPath: copy + "/batch.json"))
      let read = try BatchSessions(reading: copy).readers[0]
      #expect(read.batch.folder != nil && read.batch.warnings == [])
      #expect(try BatchDigest.of(read) == BatchDigest.of(reader))
    }
  }
}
