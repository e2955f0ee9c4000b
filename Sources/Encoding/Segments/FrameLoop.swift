// The loop over a batch's frames, for encoding and inspecting: each frame is read and decoded once, in order. The holds of a frame
// are known with the next frame.

import FileSystem
import FrameBatches

/// A consumer of a batch's holds as they become known.
package protocol ShotConsumer: ~Copyable {
  mutating func refuse(_ frame: RefusedFrame)
  /// A note on a frame that is shown.
  mutating func note(_ text: String, on capture: Capture)
  mutating func show(_ still: SourceFrame, in shots: [FrameHold], _ isCancelled: () -> Bool) throws
}

package enum FrameLoop {
  /// - Returns: the number of frames that equal the one before, which cost neither a decode nor an encode.
  @discardableResult
  package static func walk<Sink: ShotConsumer & ~Copyable>(
    _ source: BatchReader, _ options: EncodingOptions, _ memory: KeyFrameCache?, digest: inout BatchDigest,
    into sink: inout Sink, isCancelled: @escaping () -> Bool
  ) throws -> Int {
    let batch = source.batch
    var timeline = Timeline(of: batch, maxHoldMs: options.maxHoldMs)
    var stills = Stills(source, options, memory, isCancelled)
    var shown: (still: SourceFrame, frame: Frame)?
    for frame in batch.frames {
      if isCancelled() { throw Cancelled() }
      if let shown, shown.frame.timeMs == frame.timeMs {
        sink.refuse(
          RefusedFrame(source: frame.source, reason: "\(shown.frame.source) has the same instant and came later"))
        try digest.add(frame, source.images(of: frame))
        continue
      }
      switch try stills.still(of: frame, digest: &digest) {
      case .failure(let refusal):
        sink.refuse(RefusedFrame(source: frame.source, reason: "decode \(frame.source): \(refusal.reason)"))
      case .success((let still, var notes)):
        let capture = Capture(source: frame.source, timeMs: frame.timeMs, width: still.width, height: still.height)
        let shots = timeline.append(capture)
        if let shown { try sink.show(shown.still, in: shots, isCancelled) }
        if let note = frame.note { notes.append(note) }
        if let reason = frame.look.blackout { notes.insert("blacked out: \(reason)", at: 0) }
        if !notes.isEmpty { sink.note(notes.joined(separator: "; "), on: capture) }
        shown = (still, frame)
      }
    }
    let shots = timeline.finish(endMs: batch.endMs)
    if let shown { try sink.show(shown.still, in: shots, isCancelled) }
    return stills.unchanged
  }
}

extension BadBatch {
  /// The error of a batch without a decodable frame.
  package init(undecodable batch: Batch, _ refused: [RefusedFrame]) {
    // Of a frame, rather than of what lay about beside them.
    let first = (refused.first { $0.reason.hasPrefix("decode ") } ?? refused.first).map { "; \($0.reason)" } ?? ""
    self.init(
      "decode", batch.name, "none of its \(batch.frames.count) frames can be decoded" + first,
      advice: "check that the recorder writes whole JPEG, PNG or WebP files, under the names that it lists")
  }
}

/// The frames of a batch; one whose files are those of the frame before, or of one that was coded before, is not decoded.
private struct Stills {
  private let source: BatchReader
  private let decoder: any FrameDecoding
  private let memory: KeyFrameCache?
  private let profile: Profile?
  /// Larger ones are decoded at once rather than kept.
  private static let keptBytes = 4 << 20
  private var previous: (identity: String, still: SourceFrame, notes: [String])?
  /// Frames that look like the one before.
  private(set) var unchanged = 0

  init(
    _ source: BatchReader, _ options: EncodingOptions, _ memory: KeyFrameCache?,
    _ isCancelled: @escaping () -> Bool
  ) {
    self.source = source
    self.memory = memory
    profile = options.profile
    decoder =
      options.decoders.map {
        SandboxedDecoder($0, for: source.batch.session, options.profile, isCancelled: isCancelled)
      }
      ?? PictureDecoder(limits: options.limits, background: options.background, profile: options.profile)
  }

  mutating func still(
    of frame: Frame, digest: inout BatchDigest
  ) throws -> Result<(still: SourceFrame, notes: [String]), RefusedPicture> {
    let reading = profile?.start(.read)
    let images = try source.images(of: frame)
    let identity = digest.add(frame, images)
    reading?.stop()
    if let previous, previous.identity == identity {
      unchanged += 1
      return .success((previous.still, previous.notes))
    }
    var files: [[UInt8]] = []
    for (path, image) in zip(frame.paths, images) {
      switch image {
      case .bytes(let file): files.append(file)
      case .refused(let reason):
        let name = images.count > 1 ? "\(lastComponent(of: path)): " : ""
        return .failure(RefusedPicture(reason: name + reason))
      }
    }
    do {
      var found = try still(from: files, frame, identity)
      let notes = found.notes
      // Another file of the same pixels.
      if let previous, previous.still.isDecoded, found.isDecoded, try previous.still.looksLike(found) {
        found = previous.still
        unchanged += 1
      }
      previous = (identity, found, notes)
      return .success((found, notes))
    } catch let refusal as RefusedPicture {
      return .failure(refusal)
    }
  }

  private func still(from files: [[UInt8]], _ frame: Frame, _ identity: String) throws -> SourceFrame {
    guard let memory, files.reduce(0, { $0 + $1.count }) <= Self.keptBytes, let key = memory.recall(identity) else {
      let decoded = try decoder.picture(from: files, frame.look)
      return SourceFrame(decoded.picture, notes: decoded.notes, identity: identity)
    }
    return SourceFrame(key, identity: identity) { [decoder] in
      do {
        return try decoder.picture(from: files, frame.look).picture
      } catch let refusal as RefusedPicture {
        // On the next attempt it is decoded first.
        memory.forget(identity)
        throw RefusedLate(source: frame.source, reason: refusal.reason)
      }
    }
  }
}

/// A frame that was decoded once cannot be decoded any more: the machine's fault, or a decoder's.
struct RefusedLate: Error, CustomStringConvertible {
  package let source: String
  package let reason: String

  package var description: String { "decode \(source), which could be decoded before: \(reason)" }
}
