// The loop over a batch's frames, for encoding and inspecting: reads and decodes each frame once, in order. The holds of a frame
// are known with the next frame.

import FileSystem
import FrameBatches

/// A consumer of a batch's holds as they become known.
package protocol HoldConsumer: ~Copyable {
  mutating func refuse(_ frame: RefusedFrame)
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
}

package enum FrameLoop {
  /// - Parameter last: the frame that the previous batch of this thread ended with; becomes that of this batch.
  /// - Returns: the number of frames that look like the one before, which are not encoded.
  @discardableResult
  package static func walk<Sink: HoldConsumer & ~Copyable>(
    _ source: BatchReader, _ options: EncodingOptions, _ cache: KeyFrameCache?, after last: inout LastFrame?,
    digest: inout BatchDigest, into sink: inout Sink, cancellation: Cancellation
  ) throws -> Int {
    let batch = source.batch
    var timeline = Timeline(of: batch, maxHoldMs: options.maxHoldMs)
    var decoder = FrameDecoder(source, options, cache, after: last.take(), cancellation)
    defer { last = decoder.last }
    var shown: (picture: SourceFrame, frame: Frame)?
    for frame in batch.frames {
      try cancellation.check()
      if let shown, shown.frame.timeMs == frame.timeMs {
        let images = try source.images(of: frame)
        digest.add(frame, images)
        sink.refuse(
          RefusedFrame(source: frame.fullName, reason: reason(toPrefer: shown.frame, shown.picture, to: frame, images)))
        continue
      }
      let picture: SourceFrame
      var notes: [String]
      do {
        (picture, notes) = try decoder.decode(frame, digest: &digest)
      } catch let refusal as RefusedPicture {
        sink.refuse(RefusedFrame(source: frame.source, undecoded: refusal.refusal))
        continue
      }
      let capture = Capture(source: frame.source, timeMs: frame.timeMs, width: picture.width, height: picture.height)
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
    }
    let holds = timeline.finish(endMs: batch.endMs)
    if let shown {
      try sink.show(shown.picture, in: holds, nextDiffers: false, cancellation)
      decoder.rememberKey(of: shown.picture, after: holds)
    }
    return decoder.unchanged
  }
}

extension FrameLoop {
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

extension BadBatch {
  /// The error of a batch without a decodable frame.
  package init(undecodable batch: Batch, _ refused: [RefusedFrame]) {
    let undecoded = refused.compactMap { frame -> (source: String, refusal: Refusal)? in
      if case .undecoded(let refusal) = frame.kind { (frame.source, refusal) } else { nil }
    }
    let formats = undecoded.compactMap { frame -> (source: String, format: OtherImage)? in
      if case .convert(let format)? = frame.refusal.remedy { (frame.source, format) } else { nil }
    }
    let counts = formats.reduce(into: [OtherImage: Int]()) { $0[$1.format, default: 0] += 1 }
    let named = OtherImage.allCases.compactMap { format in counts[format].map { "\($0) \(format.rawValue)" } }
    let most = OtherImage.allCases.max { counts[$0, default: 0] < counts[$1, default: 0] }
    let limits = LimitAdvice(
      undecoded.compactMap { if case .raise(let advice)? = $0.refusal.remedy { advice } else { nil } })
    let advice: String
    if let most, let example = formats.first(where: { $0.format == most }) {
      advice = most.advice(for: example.source)
    } else {
      advice =
        limits?.text ?? "check that the recorder writes whole JPEG, PNG or WebP files, under the names that it lists"
    }
    // The reason of a frame says more than that of another file. The advice has its remedy already.
    let cause =
      undecoded.first.map { named.isEmpty && limits == nil ? $0.refusal.text : $0.refusal.fault }
      ?? refused.first?.reason
    self.init(
      "decode", batch.name,
      "none of its \(batch.frames.count) frames can be decoded"
        + (named.isEmpty ? "" : ": " + named.joined(separator: ", ")) + (cause.map { "; \($0)" } ?? ""),
      advice: advice)
  }
}

/// Reads and decodes a batch's frames. A frame with the files of the one before, or with a cached key frame, is not decoded.
private struct FrameDecoder {
  private let source: BatchReader
  private let decoder: any FrameDecoding
  private let cache: KeyFrameCache?
  private let profile: Profile?
  /// Maximum bytes of the files of a frame with a cached key frame, which stay in memory. Larger frames are decoded at once.
  private static let maximumKeptBytes = 4 << 20
  private var previous: LastFrame?
  /// Whether `previous` is of another batch.
  private var isFirst = true
  /// The number of frames that look like the one before.
  private(set) var unchanged = 0

  init(
    _ source: BatchReader, _ options: EncodingOptions, _ cache: KeyFrameCache?, after last: LastFrame?,
    _ cancellation: Cancellation
  ) {
    self.source = source
    previous = last
    self.cache = cache
    profile = options.profile
    decoder =
      options.decoders.map {
        SandboxedDecoder($0, for: source.batch.session, options.profile, cancellation: cancellation)
      }
      ?? PictureDecoder(limits: options.limits, background: options.background, profile: options.profile)
  }

  /// The frame that was decoded last. One that is not decoded keeps its files, and its decoder.
  var last: LastFrame? { previous.flatMap { $0.picture.isDecoded ? $0 : nil } }

  /// - Throws: ``RefusedPicture`` if the frame is at fault.
  mutating func decode(_ frame: Frame, digest: inout BatchDigest) throws -> (SourceFrame, notes: [String]) {
    let reading = profile?.start(.read)
    let images = try source.images(of: frame)
    let identity = digest.add(frame, images)
    reading?.stop()
    defer { isFirst = false }
    if let previous, previous.identity == identity {
      if isFirst {
        previous.picture.differsFromPrevious = false
      } else {
        unchanged += 1
      }
      return (previous.picture, previous.notes)
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
    let notes = picture.notes
    // Another file may have the same pixels.
    if let previous, previous.picture.isDecoded, picture.isDecoded {
      if try previous.picture.looksLike(picture) {
        picture = previous.picture
        unchanged += 1
      } else {
        picture.differsFromPrevious = true
      }
    }
    previous = LastFrame(identity: identity, picture: picture, notes: notes)
    return (picture, notes)
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
      return SourceFrame(decoded.picture, notes: decoded.notes, identity: identity)
    }
    return SourceFrame(key, identity: identity) { [decoder] in
      do {
        return try decoder.picture(from: files, frame.look).picture
      } catch let refusal as RefusedPicture {
        // The next attempt decodes the frame first.
        cache.forget(identity)
        throw RefusedLate(source: frame.source, reason: refusal.refusal.text)
      }
    }
  }
}

/// A frame that was decoded once cannot be decoded any more: a fault of the environment, or of a decoder.
private struct RefusedLate: Error, CustomStringConvertible {
  let source: String
  let reason: String

  var description: String { "decode \(source), which could be decoded before: \(reason)" }
}
