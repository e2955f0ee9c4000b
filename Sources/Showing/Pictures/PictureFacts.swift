// A line about a picture for programs and models: when it was on screen, what changed, and what its manifests tell of that time.

import Encoding
import FileSystem
import FrameBatches
import JSON
import Sessions

/// The facts of a picture. Coordinates are pixels of the picture as it is written.
struct PictureFacts {
  /// Maximum number of pointer events of a picture, and of labels.
  static let maximumEvents = 1_000

  let session: SessionID
  let picture: CapturedPicture
  /// The size of the written picture.
  let size: PixelSize
  /// The name of the captured image.
  let source: String
  /// Changes to the picture that a viewer should know of.
  let note: String?
  /// Presses, releases and lost pointers while it was on screen.
  let events: [Event]
  /// The number of further ones.
  let eventsLeftOut: Int
  /// Those that begin while it was on screen.
  let labels: [Label]
  /// Where it differs from the picture before, in pixels of the capture; nil if that is unknown.
  let regions: [PictureRegion]?
  /// The parts that masks cover at some time while it is on screen, in pixels of the capture.
  let masks: [PictureRegion]

  struct Event {
    let timeMs: Int64
    let kind: PointerEvent.Kind
    let pointer: Int32
    let x: Int64
    let y: Int64
  }

  /// The name of its file, without the ending: its capture.
  static func name(_ timeMs: Int64) -> String { timeMs.dateText.replacing(":", with: "-") }

  /// Whether a file has a name that this program gives to pictures: `2026-01-08T08-05-12.000Z.jpg`, or `…Z-4.png` for a second picture
  /// of one time.
  static func isFileName(_ name: String) -> Bool {
    let (digits, shape) = (UInt8(ascii: "0")...UInt8(ascii: "9"), Array("0000-00-00T00-00-00.000Z".utf8))
    let bytes = Array(name.utf8)
    guard bytes.count > shape.count,
      zip(shape, bytes).allSatisfy({ $0 == UInt8(ascii: "0") ? digits.contains($1) : $0 == $1 })
    else { return false }
    var rest = bytes[shape.count...]
    if rest.first == UInt8(ascii: "-") {
      let number = rest.dropFirst().prefix { digits.contains($0) }
      if number.isEmpty { return false }
      rest = rest.dropFirst(1 + number.count)
    }
    return rest.elementsEqual(".jpg".utf8) || rest.elementsEqual(".png".utf8)
  }

  var members: [String: JSONValue] {
    var members: [String: JSONValue] = [
      "session": .string(session.description), "instant": .string(picture.timeMs.dateText),
      "unixMs": .number(picture.timeMs), "shownFromMs": .number(picture.shownMs.lowerBound),
      "holdMs": .number(picture.shownMs.upperBound - picture.shownMs.lowerBound), "width": .number(size.width),
      "height": .number(size.height), "tokens": .number(PictureChoice.tokens(of: size)),
      "blocks": .number(picture.blocks), "source": .string(source), "events": .array(events.map(\.json)),
      "notes": .array(note.map { [.string($0)] } ?? []),
    ]
    if case .exact(let count) = picture.change { members["changedBlocks"] = .number(count) }
    members["changedShare"] = picture.changedBlocks.map { .number(Self.share($0, of: picture.blocks)) }
    members["regions"] = regions.map { .array($0.map { written($0).json }) }
    if !masks.isEmpty { members[PaintedMasks.key] = PaintedMasks.json(masks.map(written)) }
    if !labels.isEmpty { members[SegmentLabels.key] = labels.json }
    if eventsLeftOut > 0 { members["eventsLeftOut"] = .number(eventsLeftOut) }
    return members
  }

  /// Returns a share to four decimals.
  private static func share(_ count: Int, of all: Int) -> String {
    let parts = (count * 10_000 + all / 2) / all
    return "\(parts / 10_000).\((parts % 10_000).digits(4))"
  }

  /// Returns a part of the written picture.
  private func written(_ region: PictureRegion) -> PictureRegion { region.scaled(from: picture.size, to: size) }
}

extension PictureFacts.Event {
  fileprivate var json: JSONValue {
    .object([
      "unixMs": .number(timeMs), "type": .string(kind.rawValue), "pointer": .number(pointer), "x": .number(x),
      "y": .number(y),
    ])
  }

  /// - Parameter size: of the picture that the coordinates are of.
  init?(_ event: SegmentTouches.Event, of touches: SegmentTouches, from startMs: Int64, on size: PixelSize) {
    let (x, y) = (event.x * Double(size.width) / touches.width, event.y * Double(size.height) / touches.height)
    guard let x = Int64(exactly: x.rounded()), let y = Int64(exactly: y.rounded()) else { return nil }
    self.init(timeMs: startMs + event.offsetMs, kind: event.kind, pointer: event.pointer, x: x, y: y)
  }
}

/// Reads the facts of pictures, in their order, from the manifests of a session.
struct PictureFactsReader {
  let directory: SessionDirectory
  /// In the order of their starts.
  let segments: [PublishedSegment]
  private var read: (segment: Int, facts: Facts)?

  private struct Facts {
    let frames: [JSONValue]
    let touches: SegmentTouches?
    let labels: [Label]
  }

  init(_ directory: SessionDirectory, _ segments: [PublishedSegment]) {
    (self.directory, self.segments) = (directory, segments)
  }

  /// - Parameters:
  ///   - difference: of the decoded picture from the one before; nil if it was not decoded.
  ///   - size: of the written picture.
  ///   - progress: called for each manifest of the picture's time; an error that it throws ends the work.
  /// - Throws: ``BadSession``, ``DamagedOutput`` if a manifest is not as it was written.
  mutating func facts(
    of picture: CapturedPicture, changed difference: PictureDifference?, as size: PixelSize, progress: () throws -> Void
  ) throws -> PictureFacts {
    var picture = picture
    if let difference { picture.change = difference.change }
    let frames = try manifest(picture.segment).frames
    let frame = frames.indices.contains(picture.frame) ? frames[picture.frame].object : nil
    var events: [PictureFacts.Event] = []
    var labels: [Label] = []
    var leftOut = 0
    var masks = PaintedMasks.Union()
    for mask in PaintedMasks.read(frame, of: picture.size) { masks.add(mask) }
    for number in segments[picture.segment...].prefix(while: { $0.startMs < picture.shownMs.upperBound }).indices {
      try progress()
      // Equal pictures behind it may have other masks.
      try addMasks(of: number, in: picture, to: &masks)
      labels += try manifest(number).labels.filter { picture.shownMs.contains($0.timeMs) }
      guard let touches = try manifest(number).touches else { continue }
      for event in touches.events where event.kind != .move {
        guard picture.shownMs.contains(segments[number].startMs + event.offsetMs),
          let found = PictureFacts.Event(event, of: touches, from: segments[number].startMs, on: size)
        else { continue }
        if events.count < PictureFacts.maximumEvents { events.append(found) } else { leftOut += 1 }
      }
    }
    return PictureFacts(
      session: directory.session, picture: picture, size: size, source: frame?["source"]?.string ?? "",
      note: frame?["note"]?.string, events: events, eventsLeftOut: leftOut,
      labels: Array(labels.prefix(PictureFacts.maximumEvents)), regions: difference?.regions, masks: masks.masks)
  }

  /// Adds the masks of the frames of a segment that come on screen during a picture's time.
  private mutating func addMasks(
    of number: Int, in picture: CapturedPicture, to masks: inout PaintedMasks.Union
  ) throws {
    let segment = segments[number]
    guard PixelSize(width: segment.width, height: segment.height) == picture.size else { return }
    for (frame, startMs) in zip(try manifest(number).frames, segment.startsOfFrames)
    where picture.shownMs.contains(segment.startMs + startMs) {
      for mask in PaintedMasks.read(frame.object, of: picture.size) { masks.add(mask) }
    }
  }

  private mutating func manifest(_ number: Int) throws -> Facts {
    if let read, read.segment == number { return read.facts }
    let (segment, json) = try directory.soundManifest(segments[number].startMs)
    guard segment == segments[number] else {
      throw BadSession(segment.file, "its manifest has changed meanwhile", advice: "run the command again")
    }
    // A verification reports events that are not as they were written.
    let touches = try? json.object?["touches"].map { try SegmentTouches($0, durationMs: segment.durationMs) }
    let facts = Facts(
      frames: json.object?["frames"]?.array ?? [], touches: touches, labels: SegmentLabels.labels(in: json))
    read = (number, facts)
    return facts
  }
}
