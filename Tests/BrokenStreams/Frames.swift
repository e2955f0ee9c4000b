import SegmentEncoder
import Synchronization

/// A source of frames at which a stream breaks off. It counts how many sources exist.
final class Frames: AsyncSequence, Sendable {
  typealias Element = CapturedFrame

  /// The event at one of the frames.
  enum Event: CaseIterable {
    /// The source waits for ever. Once its task is cancelled, it throws.
    case waits
    /// The source waits for ever. Once its task is cancelled, it ends.
    case ends
    /// The task is cancelled before the source returns the frame: the encoder gets it in a cancelled task.
    case cancels
    /// The task is cancelled from outside while the encoder has the frame.
    case races
    case fails
    /// The frame has a size that x264 refuses.
    case isTooWide
    /// The decoders are killed.
    case kills
  }

  struct SourceFailure: Error {}

  static let existing = Atomic(0)
  /// The number of frames of a whole stream, two a segment.
  static let count = 7

  private let event: Event
  private let place: Int
  private let reached = Atomic(false)

  /// - Parameter place: the number of the frame at which the event happens.
  init(_ event: Event, at place: Int) {
    (self.event, self.place) = (event, place)
    Self.existing.add(1, ordering: .relaxed)
  }

  deinit { Self.existing.subtract(1, ordering: .relaxed) }

  /// Whether the source was asked for the frame of the event.
  var isReached: Bool { reached.load(ordering: .acquiring) }

  func makeAsyncIterator() -> Iterator { Iterator(frames: self) }

  struct Iterator: AsyncIteratorProtocol {
    let frames: Frames
    private var number = 0

    init(frames: Frames) { self.frames = frames }

    mutating func next() async throws -> CapturedFrame? {
      defer { number += 1 }
      guard number == frames.place else { return number < count ? Frames.frame(number) : nil }
      frames.reached.store(true, ordering: .releasing)
      switch frames.event {
      case .waits: try await Task.sleep(for: .seconds(86_400))
      case .ends:
        try? await Task.sleep(for: .seconds(86_400))
        return nil
      case .cancels: withUnsafeCurrentTask { $0?.cancel() }
      case .races: break
      case .fails: throw SourceFailure()
      case .isTooWide: return Frames.wide(number)
      case .kills: killDecoders()
      }
      return number < count ? Frames.frame(number) : nil
    }
  }

  // MARK: pictures

  /// The capture of a frame, in unix milliseconds.
  static func timeMs(_ number: Int) -> Int64 { 1_767_859_512_000 + 2_500 * Int64(number) }

  /// A picture of one grey and of one mebibyte, which would be missed.
  static func frame(_ number: Int) -> CapturedFrame {
    picture(width: 512, height: 512, grey: UInt8(20 + 10 * number), number)
  }

  /// A picture wider than x264 takes (16 384 pixels).
  static func wide(_ number: Int) -> CapturedFrame { picture(width: 16_400, height: 16, grey: 9, number) }

  private static func picture(width: Int, height: Int, grey: UInt8, _ number: Int) -> CapturedFrame {
    CapturedFrame(
      pixels: [UInt8](repeating: grey, count: 4 * width * height), isBGRA: true, isPremultiplied: true, width: width,
      height: height, timeMs: timeMs(number))
  }
}
