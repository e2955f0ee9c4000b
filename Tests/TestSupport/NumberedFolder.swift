import Foundation

/// A folder of small pictures, each of which shows its number: see ``Pixels/number``.
public struct NumberedFolder {
  public static let (width, height) = (64, 32)
  /// The pictures show numbers below this.
  public static let numbers = 100
  /// An instant in unix milliseconds that names of pictures start at.
  public static let startMs: Int64 = 1_767_859_512_000

  public let path: String

  private static let pictures: [[UInt8]] = (0..<numbers).map { number in
    let row = (0..<width).map { number >> ($0 * 8 / width) & 1 == 1 ? 255 : 0 }
    return PNGImage.file(
      width: width, height: height, depth: 8, kind: 0, samples: (0..<height).flatMap { _ in row })
  }

  /// Makes a folder in a scratch directory.
  public init(_ name: String, in scratch: ScratchDirectory) throws { path = try scratch.directory(name) }

  /// Adds a picture.
  ///
  /// - Parameters:
  ///   - number: it shows the last digits.
  ///   - modifiedMs: its modification time in unix milliseconds; nil for now.
  public func add(_ name: String, _ number: Int, modifiedMs: Int64? = nil) throws {
    let file = path + "/" + name
    try Data(Self.pictures[number % Self.numbers]).write(to: URL(fileURLWithPath: file))
    guard let modifiedMs else { return }
    let time = timespec(tv_sec: Int(modifiedMs / 1_000), tv_nsec: Int(modifiedMs % 1_000) * 1_000_000)
    guard utimensat(AT_FDCWD, file, [time, time], 0) == 0 else { throw Tool.Failure("utimensat \(file)") }
  }

  /// Adds pictures that are named by their instants.
  ///
  /// - Parameters:
  ///   - offsets: milliseconds from ``startMs``.
  ///   - first: the number of the first picture.
  public func add(at offsets: [Int64], from first: Int = 0) throws {
    for (index, offset) in offsets.enumerated() { try add("\(Self.startMs + offset).png", first + index) }
  }
}

/// A film as stock tools read it.
public struct ShownFilm {
  /// A capture that comes on screen, or a gap.
  public struct Entry: Equatable {
    public let tick: Int64
    /// The capture in unix milliseconds; nil for a gap.
    public let timeMs: Int64?
    /// The source of the capture.
    public let source: String?
  }

  /// In order; a capture that continues is no new entry.
  public let entries: [Entry]
  /// When each sample is shown, and its number.
  public let samples: [(tick: Int64, number: Int)]
  /// The duration of each track.
  public let durations: [Int64]

  /// - Parameter film: of pictures of a ``NumberedFolder``.
  public init(_ film: String) throws {
    let probe = try Probe(film)
    durations = probe.streams.compactMap(\.durationTs)
    var texts = try Probe.timingTexts(film)[...]
    var entries: [Entry] = []
    for packet in probe.packets(of: 1) {
      let text = packet.size == "2" ? nil : texts.popFirst()
      let entry = Entry(tick: packet.pts, timeMs: text?.t, source: text?.f)
      if entries.last?.timeMs != entry.timeMs || entries.isEmpty { entries.append(entry) }
    }
    self.entries = entries
    let pictures = try Pixels.decode(film, width: NumberedFolder.width, height: NumberedFolder.height)
    let packets = probe.packets(of: 0)
    guard pictures.count == packets.count else {
      throw Tool.Failure("\(film): \(pictures.count) pictures of \(packets.count) samples")
    }
    samples = zip(packets, pictures).map { ($0.pts, $1.number) }
  }

  /// Returns the number on screen.
  public func number(at tick: Int64) -> Int? { samples.last { $0.tick <= tick }?.number }

  /// Whether each sample lasts for a tick at least.
  public var samplesLast: Bool {
    var ends: [Int64] = samples.dropFirst().map(\.tick)
    ends.append(durations.first ?? 0)
    return zip(samples, ends).allSatisfy { $0.tick < $1 }
  }
}
