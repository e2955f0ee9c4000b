@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import SegmentEncoder
@testable import WorkQueues

/// Reads batches with a format, and checks what the code behind the readers relies on.
enum FormatFuzzing {
  /// - Parameter bytes: in the form of ``FuzzedContents``.
  static func read(_ bytes: [UInt8], as format: any BatchFormat.Type) {
    let (name, rest) = named(bytes)
    let isDirectory = name.hasSuffix("/")
    guard let contents = FuzzedContents(rest, isDirectory: isDirectory, limits: FuzzTarget.limits) else { return }
    read(BatchSource(name: isDirectory ? String(name.dropLast()) : name, contents: contents), as: format)
  }

  /// - Parameter bytes: the batch's name, a line feed, the stream.
  static func readStream(_ bytes: [UInt8], as format: any BatchFormat.Type) {
    let (name, rest) = named(bytes)
    read(BatchSource(name: name, contents: StreamContents(.memory(Array(rest)))), as: format)
  }

  /// - Parameter bytes: in the form of ``FuzzedContents``. A batch name with a percent sign is a pattern of names.
  ///   After a `#`, it is a start time and a number of frames per second.
  static func readNames(_ bytes: [UInt8]) {
    let (name, rest) = named(bytes)
    guard let contents = FuzzedContents(rest, isDirectory: true, limits: FuzzTarget.limits) else { return }
    var source = BatchSource(name: name, contents: contents)
    let parts = name.dropFirst().split(separator: ",", maxSplits: 1).map(String.init)
    let isNumbered = name.hasPrefix("#") && parts.count == 2
    do {
      try source.options.setTimes(
        nameTime: !isNumbered && name.contains("%") ? name : nil, times: nil, start: isNumbered ? parts[0] : nil,
        fps: isNumbered ? parts[1] : nil, timeZone: "Europe/Berlin")
    } catch {
      return
    }
    let named: any BatchFormat.Type = contents.names.contains("traj.jsonl") ? OSWorldFormat.self : NamedTimesFormat.self
    read(source, as: isNumbered ? NumberedFormat.self : named)
  }

  private static func named(_ bytes: [UInt8]) -> (name: String, rest: ArraySlice<UInt8>) {
    let name = bytes.prefix { $0 != 0x0A }
    return (printableName(Array(name)), bytes.dropFirst(name.count + 1))
  }

  private static func read(_ source: BatchSource, as format: any BatchFormat.Type) {
    let limits = FuzzTarget.limits
    do {
      var source = source
      source.session = String(source.name.prefix { $0 != "@" })
      guard let batch = try BatchSessions(source, as: format, name: source.name, limits: limits) else { return }
      for open in batch.readers {
        check(open.batch, limits)
        for frame in open.batch.frames {
          let images = try open.images(of: frame)
          require(images.count == frame.look.raws.count, "an image for each layer")
          check(frame.look)
          if format == NativeFormat.self { PictureFuzzing.draw(frame.look, of: images) }
        }
      }
    } catch {
      check(error, batch: source.name)
    }
  }

  private static func check(_ batch: Batch, _ limits: Limits) {
    require(SessionID(batch.session.description) == batch.session, "a session that can be a directory")
    require((1...limits.frames).contains(batch.frames.count), "frames, within limits")
    require(batch.frames.allSatisfy { limits.instants.contains($0.timeMs) }, "instants that can be captures")
    LabelFuzzing.check(batch.labels)
    for (frame, next) in zip(batch.frames, batch.frames.dropFirst()) {
      // A jump stays where nothing tells which side of it is wrong.
      require(frame.timeMs <= next.timeMs, "frames in order")
    }
    require((1...3_600_000).contains(batch.intervalMs), "an interval")
    require(batch.endMs > batch.frames[batch.frames.count - 1].timeMs, "an end behind the last capture")
    require(limits.instants.contains(batch.endMs), "an end that can be an instant")
    require(batch.refused.count <= limits.refusals + 1, "few words on refused frames")
    require(batch.refused.allSatisfy { $0.source.utf8.count <= limits.nameBytes }, "short names of refused frames")
    require((try? JSONParser.parse(batch.metadata.bytes())) == batch.metadata, "metadata that a manifest can repeat")
    check(batch.pointers, limits)
    place(batch)
  }

  private static func check(_ track: PointerTrack, _ limits: Limits) {
    let events = track.events
    require(events.count <= limits.touches, "pointer events, within limits")
    require(events.allSatisfy { limits.instants.contains($0.timeMs) && $0.pointer >= 0 }, "events that can be placed")
    require(zip(events, events.dropFirst()).allSatisfy { $0.timeMs <= $1.timeMs }, "events in order")
    require(
      events.allSatisfy { max(abs($0.x), abs($0.y)) <= PointerEvent.maximumCoordinate }, "coordinates, within limits")
  }

  /// Checks that what is kept of the pointer events lies under no mask of its picture, and that readers take it.
  private static func place(_ batch: Batch) {
    if batch.pointers.events.isEmpty { return }
    var timeline = Timeline(of: batch, EncodingOptions())
    var holds: [FrameHold] = []
    for (index, frame) in batch.frames.enumerated() where index == 0 || batch.frames[index - 1].timeMs < frame.timeMs {
      // Some frames cannot be decoded, and some pictures have another size.
      guard index % 7 != 3 else { continue }
      let width = index % 5 == 4 ? 320 : 180
      holds += timeline.append(Capture(source: "", timeMs: frame.timeMs, width: width, height: 320))
    }
    // A day of one picture has many segments.
    holds += timeline.finish(endMs: min(batch.endMs, batch.frames[batch.frames.count - 1].timeMs + 60_000))
    var segments: [[FrameHold]] = []
    for hold in holds {
      if hold.opensSegment { segments.append([]) }
      segments[segments.count - 1].append(hold)
    }
    guard let placement = try? PointerPlacement(of: batch, on: segments, cancellation: .never) else { return }
    require(placement.touches.count == segments.count, "touches of each segment")
    for (touches, holds) in zip(placement.touches, segments) {
      guard let touches, let last = holds.last else { continue }
      let durationMs = last.endMs - holds[0].startMs
      require((try? SegmentTouches(touches.json, durationMs: durationMs)) == touches, "touches that readers take")
      for event in touches.events {
        let timeMs = holds[0].startMs + event.offsetMs
        let shown = holds.last { $0.startMs <= timeMs }?.capture
        let (x, y) = (event.x * Double(shown?.width ?? 0) / touches.width, event.y * 320 / touches.height)
        let looks = batch.frames.filter { $0.timeMs == shown?.timeMs }.map(\.look)
        require(!looks.contains { $0.hides(PointerLine(x: x, y: y)) }, "no touch under a mask")
      }
    }
  }

  /// Checks that masks become whole pixels inside the picture, or cover all of it.
  private static func check(_ look: FrameComposition) {
    guard case .rectangles(let rectangles) = look.masks else { return }
    for rectangle in rectangles {
      let pixels = rectangle.pixels(width: 176, height: 320)
      require(pixels.x.clamped(to: 0..<176) == pixels.x && pixels.y.clamped(to: 0..<320) == pixels.y, "masks inside")
    }
  }

  /// Checks that a reader refuses a batch only for the batch's own fault. The worker would retry any other error
  /// forever.
  static func check(_ error: any Error, batch: String) {
    require(error is BadBatch, "the batch's own fault, not \(error)")
    let line = Disposition(of: error, batch: batch).json(batch: batch, error)
    require((try? JSONParser.parse(Array(line.utf8))) != nil, "a reason in JSON: \(line)")
  }
}
