// Frames that come one after the other: decodes each frame once, puts it on the timeline, and hands its holds over.

import FileSystem
import FrameBatches

/// A consumer of holds as they become known.
package protocol HoldConsumer: ~Copyable {
  mutating func refuse(_ frame: RefusedFrame)
  /// Takes the last refused frames out: a later run of a growing folder may find them whole.
  mutating func leave(last count: Int)
  /// Takes a note on a frame before `show` gets the frame.
  mutating func note(_ text: String, on capture: Capture)
  /// - Parameter nextDiffers: whether a frame with other pixels is known to follow.
  mutating func show(
    _ frame: SourceFrame, in holds: [FrameHold], nextDiffers: Bool, _ cancellation: Cancellation
  ) throws
}

/// The decoded frame that a batch ends with. The next batch of a session often begins with the same files.
package struct LastFrame {
  fileprivate let identity: String
  fileprivate let picture: SourceFrame
  fileprivate let notes: [String]
  fileprivate let facts: PictureFacts
  fileprivate let masks: [PictureRegion]
}

/// Frames in the order of their captures. Each is decoded once and put on the timeline. The holds of a frame are known with the next
/// frame.
package struct FrameSequence {
  private var timeline: Timeline
  private var decoder: FrameDecoder
  private var shown: (picture: SourceFrame, frame: Frame)?
  /// The first capture, and the last one that differs from the one before it, in unix milliseconds.
  private var (firstMs, changedMs): (Int64?, Int64?)

  /// - Parameter last: the frame that the previous sequence of this thread ended with.
  package init(
    of session: SessionID, _ timeline: Timeline, _ options: EncodingOptions, _ cache: KeyFrameCache?,
    after last: consuming LastFrame?, _ cancellation: Cancellation
  ) {
    self.timeline = timeline
    decoder = FrameDecoder(session, options, cache, after: last, cancellation)
  }

  /// The instant of the last decoded frame, in unix milliseconds.
  package var shownMs: Int64? { shown?.frame.timeMs }

  /// The decoded frame that the sequence ends with.
  package var last: LastFrame? { decoder.last }

  /// The number of frames that look like the one before.
  package var unchanged: Int { decoder.unchanged }

  /// The facts of all frames so far.
  package private(set) var facts = PictureFacts()

  /// Appends a frame that is not earlier than the one before. A frame at the same instant, or one that cannot be decoded, is refused.
  ///
  /// - Parameter identity: of the frame's files and composition: equal for frames that look the same.
  package mutating func append<Sink: HoldConsumer & ~Copyable>(
    _ frame: Frame, _ images: consuming [FrameFile], _ identity: String, into sink: inout Sink,
    _ cancellation: Cancellation
  ) throws {
    if let shown, shown.frame.timeMs == frame.timeMs {
      let isCompanion = decoder.lastIdentity == identity || frame.isNamed(like: shown.frame)
      sink.refuse(
        RefusedFrame(
          source: frame.fullName, reason: Self.reason(toPrefer: shown.frame, shown.picture, to: frame, images),
          kind: .sameInstant(isCompanion: isCompanion)))
      return
    }
    let (picture, masks): (SourceFrame, [PictureRegion])
    var notes: [String]
    let changedBlocks: Int?
    do {
      (picture, notes, masks, changedBlocks) = try decoder.decode(frame, images, identity)
      if let last = decoder.lastFacts { facts.add(last) }
    } catch let refusal as RefusedPicture {
      sink.refuse(RefusedFrame(source: frame.source, undecoded: refusal.refusal))
      return
    }
    let capture = Capture(
      source: frame.source, timeMs: frame.timeMs, width: picture.width, height: picture.height,
      changedBlocks: changedBlocks, masks: masks)
    let holds = timeline.append(capture)
    if let shown {
      let nextDiffers = picture !== shown.picture && picture.differsFromPrevious
      try sink.show(shown.picture, in: holds, nextDiffers: nextDiffers, cancellation)
      decoder.rememberKey(of: shown.picture, after: holds)
    }
    if let note = frame.note { notes.append(note) }
    if let reason = frame.look.blackout { notes.insert("blacked out: \(reason)", at: 0) }
    if !notes.isEmpty { sink.note(notes.joined(separator: "; "), on: capture) }
    shown = (picture, frame)
    firstMs = firstMs ?? frame.timeMs
    if changedBlocks != 0 { changedMs = frame.timeMs }
  }

  /// Returns the screen since its last change; nil before the first frame and after the last one.
  package func screen() throws -> StillScreen? {
    guard let shown, let firstMs, let changedMs else { return nil }
    let picture = try shown.picture.picture()
    return StillScreen(
      sinceMs: changedMs, untilMs: shown.frame.timeMs, isWhole: changedMs == firstMs, picture: picture.digest,
      isBlank: picture.isBlank)
  }

  /// Ends the sequence.
  ///
  /// - Parameter endMs: when the last frame leaves the screen, in unix milliseconds.
  package mutating func finish<Sink: HoldConsumer & ~Copyable>(
    endMs: Int64, into sink: inout Sink, _ cancellation: Cancellation
  ) throws {
    let holds = timeline.finish(endMs: endMs)
    guard let shown else { return }
    try sink.show(shown.picture, in: holds, nextDiffers: false, cancellation)
    decoder.rememberKey(of: shown.picture, after: holds)
    self.shown = nil
  }

  /// Returns why a frame is shown and not another one at the same instant.
  private static func reason(
    toPrefer shown: Frame, _ picture: SourceFrame, to frame: Frame, _ images: [FrameFile]
  ) -> String {
    let same = "\(shown.fullName) has the same instant and"
    guard shown.folderDepth == frame.folderDepth else { return "\(same) lies in a higher folder" }
    guard images.count == 1, case .bytes(let file) = images[0], let size = ImageKind(of: file)?.size(of: file),
      size.width.multipliedReportingOverflow(by: size.height).partialValue < picture.width * picture.height
    else { return "\(same) came later" }
    return "\(same) is larger: \(picture.width)×\(picture.height), not \(size.width)×\(size.height)"
  }
}

/// Decodes frames. A frame with the files of the one before, or with a cached key frame, is not decoded.
private struct FrameDecoder {
  private let decoder: any FrameDecoding
  private let scaler: PictureScaler
  private let cache: KeyFrameCache?
  /// Maximum bytes of the files of a frame with a cached key frame, which stay in memory. Larger frames are decoded at once.
  private static let maximumKeptBytes = 4 << 20
  private var previous: LastFrame?
  /// Whether `previous` is of another batch.
  private var isFirst = true
  /// The number of frames that look like the one before.
  private(set) var unchanged = 0

  init(
    _ session: SessionID, _ options: EncodingOptions, _ cache: KeyFrameCache?, after last: consuming LastFrame?,
    _ cancellation: Cancellation
  ) {
    previous = last
    self.cache = cache
    scaler = PictureScaler(maxSide: options.maxSide, canvas: options.canvas, converter: PictureConverter())
    decoder =
      options.decoders.map {
        SandboxedDecoder(
          $0, for: session, options.profile, sampleBits: options.sampleBits, cancellation: cancellation)
      }
      ?? PictureDecoder(options)
  }

  /// The identity of the frame that was decoded last.
  var lastIdentity: String? { previous?.identity }

  /// The frame that was decoded last. One that is not decoded keeps its files, and its decoder.
  var last: LastFrame? { previous.flatMap { $0.picture.isDecoded ? $0 : nil } }

  /// The facts of the frame that was decoded last.
  var lastFacts: PictureFacts? { previous?.facts }

  /// - Returns: the picture, its notes, the parts that masks cover, and the number of its blocks that differ from the picture before:
  ///   nil for the first one of the batch and after another size.
  /// - Throws: ``RefusedPicture`` if the frame is at fault.
  mutating func decode(
    _ frame: Frame, _ images: [FrameFile], _ identity: String
  ) throws -> (SourceFrame, notes: [String], masks: [PictureRegion], changedBlocks: Int?) {
    if let previous, previous.identity == identity {
      defer { isFirst = false }
      if isFirst {
        previous.picture.differsFromPrevious = false
      } else {
        unchanged += 1
      }
      return (previous.picture, previous.notes, previous.masks, isFirst ? nil : 0)
    }
    // Now its memory can be used again.
    if isFirst { previous = nil }
    var files: [[UInt8]] = []
    for (path, image) in zip(frame.paths, images) {
      switch image {
      case .bytes(let file): files.append(file)
      case .refused(let refusal):
        throw RefusedPicture(images.count > 1 ? refusal.at(lastComponent(of: path)) : refusal)
      }
    }
    var picture = try picture(from: files, frame, identity)
    // An equal picture may have other ones.
    let (notes, facts, masks) = (picture.notes, picture.facts, picture.masks)
    // Another file may have the same pixels. The first frame of a batch has none before it.
    let changedBlocks = try previous.flatMap { try picture.changedBlocks(since: $0.picture) }
    if let previous {
      if changedBlocks == 0 {
        picture = previous.picture
        unchanged += 1
      } else {
        picture.differsFromPrevious = true
      }
    }
    previous = LastFrame(identity: identity, picture: picture, notes: notes, facts: facts, masks: masks)
    isFirst = false
    return (picture, notes, masks, changedBlocks)
  }

  /// Caches the key frame of a picture when a segment has closed that shows only this picture.
  func rememberKey(of picture: SourceFrame, after holds: [FrameHold]) {
    guard let cache, let key = picture.key, let identity = picture.identity else { return }
    if holds.contains(where: { $0.closingGapMs != nil }) { cache.remember(key, as: identity) }
  }

  private func picture(from files: [[UInt8]], _ frame: Frame, _ identity: String) throws -> SourceFrame {
    guard let cache, files.reduce(0, { $0 + $1.count }) <= Self.maximumKeptBytes, let key = cache.recall(identity)
    else {
      let decoded = try decoder.picture(from: files, frame.look)
      let fitted = try scaler.fitted(decoded.picture)
      let masks = frame.look.paintedMasks(of: decoded.picture.size, as: fitted.size)
      return SourceFrame(fitted, notes: decoded.notes, facts: decoded.facts, masks: masks, identity: identity)
    }
    return SourceFrame(key, identity: identity) { [decoder, scaler] in
      do {
        return try scaler.fitted(decoder.picture(from: files, frame.look).picture)
      } catch let refusal as RefusedPicture {
        // The next attempt decodes the frame first.
        cache.forget(identity)
        throw RefusedLate(source: frame.source, reason: refusal.refusal.text)
      }
    }
  }
}

/// Scales pictures to a maximum length of their sides, and puts them on a canvas; nil to keep their size.
private struct PictureScaler {
  let maxSide: Int?
  let canvas: PixelSize?
  let converter: PictureConverter

  func fitted(_ picture: Picture) throws(FFmpegError) -> Picture {
    let fitted = try maxSide.map { (side) throws(FFmpegError) in try picture.fitted(maxSide: side, with: converter) }
    guard let canvas else { return fitted ?? picture }
    return try (fitted ?? picture).placed(on: canvas, with: converter)
  }
}

/// A frame that was decoded once cannot be decoded any more: a fault of the environment, or of a decoder.
private struct RefusedLate: Error, CustomStringConvertible {
  let source: String
  let reason: String

  var description: String { "decode \(source), which could be decoded before: \(reason)" }
}
