import Foundation

/// A session generated from a seed. It has one to three frames a second with jitter, gaps and screen rotation. Batches
/// start up to 400 ms early or late, and some have a single frame.
public struct GeneratedSession: Sendable {
  public static let startMs: Int64 = 1_767_859_512_340

  public struct Frame: Sendable {
    public let timeMs: Int64
    public let isLandscape: Bool
  }

  public let name: String
  /// The batch directories, in order of arrival.
  public let batches: [String]
  /// The frames, ordered by time.
  public let frames: [Frame]

  public init(seed: Int, in scratch: ScratchDirectory) throws {
    var random = Random(seed: seed)
    name = "generated-\(seed)"
    var frames: [Frame] = []
    var batches: [String] = []
    var start = Self.startMs
    for number in 0..<random.int(2...6) {
      let path = try scratch.directory("\(name)@\(number)")
      let (own, intervalMs) = Self.captures(from: start, &random)
      let endMs = own[own.count - 1].timeMs + random.int(300...1_000)
      try Self.write(own, endMs: endMs, intervalMs: intervalMs, session: name, to: path)
      frames += own
      batches.append(path)
      // The next batch may start before this batch ends, but not before its last frame.
      let seam = min(400, intervalMs / 2 - 1)
      let earliest = max(-seam, own[own.count - 1].timeMs - endMs + 20)
      start = endMs + (random.once(in: 4) ? random.int(intervalMs...9_000) : random.int(earliest...seam))
    }
    self.frames = frames
    self.batches = batches.shuffled(using: &random)
  }

  /// - Returns: The frames, and the declared interval: the recorder's own, or 1000 ms.
  private static func captures(from start: Int64, _ random: inout Random) -> ([Frame], intervalMs: Int64) {
    let intervalMs = 1_000 / random.int(1...3)
    let said = random.once(in: 2) ? intervalMs : 1_000
    var isLandscape = random.once(in: 4)
    var frames = [Frame(timeMs: start, isLandscape: isLandscape)]
    guard !random.once(in: 5) else { return (frames, said) }
    for _ in 0..<random.int(3...24) {
      let pauseMs = random.once(in: 12) ? random.int(4_000...12_000) : 0
      let jitterMs = random.int(-intervalMs / 8...intervalMs / 8)
      if random.once(in: 9) { isLandscape.toggle() }
      let last = frames[frames.count - 1].timeMs
      frames.append(Frame(timeMs: last + intervalMs + jitterMs + pauseMs, isLandscape: isLandscape))
    }
    return (frames, said)
  }

  private static func write(
    _ frames: [Frame], endMs: Int64, intervalMs: Int64, session: String, to path: String
  ) throws {
    var list: [Description.Frame] = []
    for (number, frame) in frames.enumerated() {
      let source = frame.isLandscape ? "rotation/000\(3 + number % 3).jpg" : "rotation/000\(number % 3).jpg"
      try FileManager.default.copyItem(atPath: Fixture(source).path, toPath: "\(path)/\(number).jpg")
      list.append(Description.Frame(file: "\(number).jpg", timeMs: frame.timeMs))
    }
    let description = Description(version: 1, session: session, intervalMs: intervalMs, endMs: endMs, frames: list)
    try JSONEncoder().encode(description).write(to: URL(fileURLWithPath: path + "/batch.json"))
  }

  /// The members of `batch.json`.
  private struct Description: Encodable {
    struct Frame: Encodable {
      let file: String
      let timeMs: Int64
    }

    let version: Int
    let session: String
    let intervalMs, endMs: Int64
    let frames: [Frame]
  }
}
