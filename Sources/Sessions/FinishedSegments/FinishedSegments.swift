// A batch of finished videos: their coded pictures become segments, without encoding them again. Each video is published as soon as
// it is known where the next one begins, so another attempt continues a stopped one.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON

package struct FinishedSegments {
  private let source: BatchReader
  private let videos: FinishedVideos
  private let reader: VideoReader
  private let cancellation: Cancellation
  private var rest: ArraySlice<Frame>
  /// The last video, whose end depends on the next one.
  private var open: CopiedVideo?
  /// The start of the first video that is copied, in unix milliseconds; nil before.
  private var firstMs: Int64?
  /// The videos that are not copied.
  private var refused: [Refused] = []

  private struct Refused {
    let file: String
    let cause: String
    let advice: String?
    /// Whether no picture is lost: it has none, or another video has the same.
    var isEmpty = false
    var tooOld: BatchTooOld?
    /// Whether other pictures are published for its time.
    var isConflict = false

    var frame: RefusedFrame {
      RefusedFrame(
        source: file, reason: advice.map { "\(cause); \($0)" } ?? cause, kind: isEmpty ? .copy : .other)
    }
  }

  /// - Parameters:
  ///   - source: a batch with ``Batch/videos``.
  ///   - decoders: the processes that read videos; nil to read trusted videos in this process.
  package init(
    _ source: BatchReader, _ videos: FinishedVideos, decoders: DecoderForkServer?, _ cancellation: Cancellation
  ) {
    (self.source, self.videos, self.cancellation) = (source, videos, cancellation)
    reader = VideoReader(decoders, owner: source.batch.session.description)
    rest = source.batch.frames[...]
  }

  /// Publishes the videos, in the order of their starts. A video that cannot be copied stops no other one.
  ///
  /// - Parameter advance: called after each video.
  /// - Returns: the receipt of all videos, and ``loss(shown:)``.
  /// - Throws: ``BadBatch`` if none is published; ``BatchTooOld``; ``SessionDeleted``; ``Cancelled``; ``ViewUpdateFailure``; a failure
  ///   of the store.
  package mutating func publish(
    to store: any ArtifactStore, advance: () -> Void
  ) throws -> (receipt: Receipt, loss: BadBatch?) {
    let begin = try store.publisher(of: source)
    var receipts: [Receipt] = []
    while let video = try next(advance) {
      if let receipt = try publish(video, in: store, begin) { receipts.append(receipt) }
      advance()
    }
    guard !receipts.isEmpty else { throw nothingPublished }
    let receipt = Receipt(
      receipts.flatMap(\.published), of: source.batch,
      refused: (source.batch.refused + refused.map(\.frame) + receipts.flatMap(\.refused)).shortened(to: source.limits),
      duplicate: receipts.allSatisfy(\.duplicate),
      warnings: Self.shortened(source.batch.warnings + receipts.flatMap(\.warnings)))
    return (receipt, loss(shown: receipts.count))
  }

  private static let maximumWarnings = 100

  private static func shortened(_ warnings: [String]) -> [String] {
    guard warnings.count > maximumWarnings else { return warnings }
    return warnings.prefix(maximumWarnings) + ["and \(warnings.count - maximumWarnings) more"]
  }

  private mutating func publish(
    _ video: CopiedVideo, in store: any ArtifactStore, _ begin: VideoPublisher
  ) throws -> Receipt? {
    guard let manifests = try manifests(of: video, keep: store.stage) else { return nil }
    defer { for manifest in manifests { manifest.staged.video.discard() } }
    do {
      let batch = video.batch(of: source.batch, named: source.batch.name, isLast: isLast)
      var receipt = try begin(batch).commit(manifests, cancellation: cancellation).updateViews()
      receipt.warnings = (video.warnings + receipt.warnings).map { "\(video.name): \($0)" }
      return receipt
    } catch let bad as BadBatch {
      refuse(video.name, bad.cause, bad.advice)
      refused[refused.count - 1].isConflict = true
    } catch let old as BatchTooOld {
      refuse(video.name, "\(old)", nil)
      refused[refused.count - 1].tooOld = old
    }
    return nil
  }

  /// The error of a batch of which no video is shown.
  package var nothingPublished: any Error {
    let lost = refused.filter { !$0.isEmpty }
    if !lost.isEmpty, lost.allSatisfy({ $0.tooOld != nil }), let old = lost[0].tooOld { return old }
    let first = (lost.first ?? refused.first).map { "; \($0.file): \($0.cause)" } ?? ""
    return BadBatch(
      "publish", source.batch.name,
      "none of its \(count(source.batch.frames.count, "video")) can be copied" + first,
      advice: (lost.first ?? refused.first)?.advice ?? "send the recorder's videos and their events, complete")
  }

  /// Returns the error of a batch of which more than half of the videos are not shown, or one for whose time others are published; nil
  /// for others.
  ///
  /// - Parameter shown: the number of videos that are.
  package func loss(shown: Int) -> BadBatch? {
    let lost = refused.filter { !$0.isEmpty }.map(\.frame) + videos.unplaced
    let isMostlyLost = PictureShare(lost: lost.count, total: lost.count + shown).isMostlyLost
    guard isMostlyLost || refused.contains(where: \.isConflict) else { return nil }
    return BadBatch(
      "publish", source.batch.name,
      "\(lost.count) of \(lost.count + shown) videos are not shown; the first, \(lost[0].source): \(lost[0].reason)",
      advice: "correct them, and send the batch again: the others are not published twice")
  }

  /// The files that are refused so far, also by the batch's reader.
  package var allRefused: [RefusedFrame] { source.batch.refused + refused.map(\.frame) }

  private mutating func refuse(_ file: String, _ cause: String, _ advice: String?, isEmpty: Bool = false) {
    refused.append(Refused(file: file, cause: cause, advice: advice, isEmpty: isEmpty))
  }

  // MARK: - One video after the other

  /// Whether no video follows.
  private var isLast: Bool { open == nil && rest.isEmpty }

  /// Returns the next video, as soon as it is known where the one behind it begins; nil behind the last one.
  ///
  /// - Parameter advance: called after each video that is refused.
  /// - Throws: ``DiskError``; ``Cancelled``.
  package mutating func next(_ advance: () -> Void) throws -> CopiedVideo? {
    while let frame = rest.popFirst() {
      try cancellation.check()
      guard let next = try read(frame) else {
        advance()
        continue
      }
      guard var video = open else {
        open = next
        continue
      }
      if let (hidden, cause, isSame) = Self.hidden(video, next) {
        refuse(hidden.name, cause, nil, isEmpty: isSame)
        if hidden.name == video.name { open = next }
        advance()
        continue
      }
      if next.startMs < video.endMs, !video.isSeam(before: next) { video.cut(atMs: next.startMs, for: next.name) }
      video.meet(next)
      open = next
      firstMs = firstMs ?? video.startMs
      return video
    }
    firstMs = firstMs ?? open?.startMs
    return open.take()
  }

  /// Returns the labels up to the next video. The first video also has those before it, and the last one those behind it.
  private func labels(of video: CopiedVideo) -> [Label] {
    let untilMs = open?.startMs ?? .max
    return source.batch.labels.filter { label in
      label.timeMs < untilMs && (label.timeMs >= video.startMs || video.startMs == firstMs)
    }
  }

  /// Returns the one of two videos that is not shown, because the other one has its time; nil if both are shown.
  private static func hidden(
    _ video: CopiedVideo, _ next: CopiedVideo
  ) -> (hidden: CopiedVideo, cause: String, isSame: Bool)? {
    if next.startMs == video.startMs {
      if next.sha256 == video.sha256 { return (next, "the same as \(video.name)", true) }
      if next.endMs > video.endMs { return (video, "\(next.name) shows its time", false) }
    }
    return next.endMs <= video.endMs ? (next, "\(video.name) shows its time", false) : nil
  }

  /// Reads a video; nil if it is refused.
  private mutating func read(_ frame: Frame) throws -> CopiedVideo? {
    let (path, name) = (frame.paths[0], frame.source)
    do {
      switch try source.contents.contents(of: path, limit: SegmentManifest.maximumVideoBytes) {
      case .bytes(let bytes)?:
        guard !bytes.isEmpty else {
          refuse(name, "an empty file", nil, isEmpty: true)
          return nil
        }
        return try CopiedVideo(
          bytes, named: name, startMs: frame.timeMs, videos.facts[path]?.event, manifest(of: path), reader,
          source.limits,
          cancellation)
      case .refused(let refusal)?: refuse(name, "\(refusal)", nil)
      case nil: refuse(name, "it is gone", nil)
      }
    } catch is NoDuration {
      refuse(name, "no duration", nil, isEmpty: true)
    } catch let bad as BadSession where bad.cause == VideoTrack.noPicture {
      refuse(name, bad.cause, nil, isEmpty: true)
    } catch let bad as BadSession {
      let file = (videos.path.map(\.asFolder) ?? "") + path
      let command =
        "encoder-worker reencode \(file.shellWord) --start \(frame.timeMs) --output DIR --quality balanced"
      refuse(name, bad.cause, bad.advice == FinishedVideo.advice ? "encode it anew: " + command : bad.advice)
    } catch let failure as FFmpegError {
      // This includes a lack of memory: a damaged file can ask for any amount.
      refuse(name, "it cannot be read: \(failure.cause)", "check that the file is complete")
    }
    return nil
  }

  /// Returns our manifest beside a video; nil if there is none.
  private func manifest(of video: String) throws -> PublishedSegment? {
    guard let path = videos.facts[video]?.manifest,
      let startMs = SegmentName.start(ofManifest: lastComponent(of: path)),
      case .bytes(let bytes)? = try source.contents.contents(of: path, limit: SegmentManifest.maximumBytes)
    else { return nil }
    return try? SegmentManifest.read(bytes, of: startMs, path: path).segment
  }

  /// Returns the segments of a video, each checked as `verify` does, also whether each picture can be decoded; nil if it is refused.
  package mutating func manifests(
    of video: CopiedVideo, keep: ([UInt8]) throws -> StagedVideo
  ) throws -> [SegmentManifest]? {
    var staged: [StagedSegment] = []
    do {
      let (batch, digest) = (
        video.batch(of: source.batch, named: video.name, isLast: isLast), video.digest(in: source.batch.session)
      )
      for (index, segment) in try video.segments().enumerated() {
        try cancellation.check()
        staged.append(
          try StagedSegment(
            segment, refused: index == 0 ? video.refusedFrames(source.limits) : [], notes: video.notes, keep: keep))
        let manifest = SegmentManifest(
          staged[index], of: batch, digest: digest, part: 1, parts: 1, encoder: video.encoder)
        try check(segment.bytes, manifest)
      }
      let labels = labels(of: video).divided(at: staged.map(\.startMs))
      staged = zip(staged, labels).map { $0.with($0.touches, $0.pages, $1) }
      return SegmentManifest.all(staged, of: batch, digest: digest, encoder: video.encoder)
    } catch {
      for segment in staged { segment.video.discard() }
      guard let cause = Self.cause(of: error) else { throw error }
      refuse(video.name, cause, nil)
      return nil
    }
  }

  /// Returns why a video cannot be copied; nil for a failure that is not its fault.
  private static func cause(of error: any Error) -> String? {
    switch error {
    case let bad as BadSession: bad.cause
    case is SegmentMismatch, is SegmentTooLarge: "\(error)"
    case let failure as FFmpegError: "its pictures cannot be decoded: \(failure.cause)"
    default: nil
    }
  }

  private func check(_ bytes: [UInt8], _ manifest: SegmentManifest) throws {
    let text = SegmentManifest.text(of: manifest.json)
    guard text.count <= SegmentManifest.maximumBytes else {
      throw BadSession("", "its manifest would have \(text.count) bytes, more than the limit", advice: "")
    }
    let problems = try reader.problems(manifest.json, manifest.segment, bytes)
    guard problems.isEmpty else { throw BadSession("", problems.joined(separator: "; "), advice: "") }
  }
}
