// Another tool's MP4 as a source: the times of its samples are the captures, and its key frames divide it into pieces.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import ISOMedia
import JSON
import Sessions

struct FilmSource: VideoSource {
  private struct Plan {
    /// The sample from which a piece is decoded.
    let key: VideoTrack.Sample
    var segments: [[SegmentOrder.PlacedHold]]
  }

  let session: SessionID
  private let path: String
  private let reader: VideoReader
  private let track: VideoTrack
  private let plans: [Plan]
  private let limits: Limits
  private let batch: Batch
  private let digest: String
  /// The file's digest, and unix milliseconds of its first picture.
  private let source: String

  /// Another program has coded it.
  var quality: Quality? { nil }

  /// Its last segment is final.
  var end: SessionEnd? { nil }

  var pieces: [[Int64]] { plans.map { $0.segments.map { $0[0].hold.startMs } } }

  init(_ path: String, _ options: Reencoding.Options, cancellation: Cancellation) throws {
    let (startMs, limits, stem) = (options.startMs, options.limits, Self.stem(of: path))
    guard let session = options.session ?? SessionID(stem) else {
      throw BadSession(path, "no name for a session", advice: "give --session; \(SessionID.rule)")
    }
    let reader = VideoReader(options.decoders, owner: path)
    let track: VideoTrack
    do {
      track = try reader.track(of: FileBytes(opening: path), name: path, limits: limits, cancellation: cancellation)
    } catch let bad as BadSession where bad.cause == VideoTrack.noTrack {
      throw BadSession(path, bad.cause, advice: VideoFormat.conversion(of: path))
    }
    // The timing track of a stitched film has each capture to the millisecond. That of numbered pictures counts from 0.
    let datedMs = track.samples[0].timeMs.flatMap { limits.instants.contains($0) ? $0 : nil }
    let isDated = startMs == nil && datedMs != nil
    guard
      let startMs = startMs ?? datedMs ?? Self.instant(in: stem, limits)
        ?? Self.instant(of: track.creationTime, limits) ?? options.assumedStartMs
    else { throw BadSession(path, "it does not say when it was recorded", advice: Self.adviceOnStart(path)) }
    guard limits.instants.contains(startMs) else {
      throw BadSession(path, "it cannot have been recorded at \(startMs)", advice: "check --start")
    }
    let name = lastComponent(of: path)
    let (frames, pts, refused) = Self.frames(of: track, name: name, startMs: startMs, isDated: isDated)
    let intervalMs = Batch.nominalInterval(of: frames.map(\.timeMs))
    let last = track.samples[track.samples.count - 1]
    // Count from the last capture: `stitch --gaps cut` removes time before it.
    let lastMs = frames.last?.timeMs ?? startMs
    let heldMs = track.milliseconds(last.pts + last.duration) - track.milliseconds(pts[lastMs] ?? 0)
    let endMs = last.duration > 0 && heldMs < Int64.max / 4 ? lastMs + heldMs : 0
    guard let final = frames.last, limits.instants.contains(final.timeMs), limits.instants.contains(max(endMs, startMs))
    else { throw BadSession(path, "times that cannot be captures", advice: "remux it with ffmpeg -c copy") }
    batch = Batch(
      name: name, session: session, intervalMs: intervalMs, endMs: max(endMs, final.timeMs + 1), capture: .onChange,
      isFinal: true, frames: frames, refused: refused.shortened(to: limits), warnings: [], metadata: .object([:]))
    let tooMany = BadSession(path, "more than the limit of \(limits.segments) segments", advice: "cut it into parts")
    // Check this before the timeline fills memory.
    guard (batch.endMs - startMs) / Timeline.defaultSegmentMs <= limits.segments else { throw tooMany }
    source = "\(try SHA256.hex(ofFile: path, cancellation: cancellation)) \(startMs)"
    digest = SHA256.hex(of: Array("film \(session) \(source)".utf8))
    plans = Self.plans(of: batch, track, pts: pts)
    guard Self.segments(in: plans[...]) <= limits.segments else { throw tooMany }
    self.limits = limits
    self.session = session
    self.path = path
    self.reader = reader
    self.track = track
  }

  private static func adviceOnStart(_ path: String) -> String {
    var status = stat()
    let written = stat(path, &status) == 0 ? WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec) : nil
    return "give --start, in unix milliseconds"
      + (written.map { ", as --start \($0), when the file was written" } ?? "")
  }

  func identity(of startMs: Int64) -> String? { source }

  /// A film does not tell whether its pictures have one.
  func overlay(of startMs: Int64) -> JSONValue? { nil }

  private static func segments(in plans: ArraySlice<Plan>) -> Int { plans.reduce(0) { $0 + $1.segments.count } }

  func open(
    _ piece: Int, cancellation: Cancellation, _ body: ([SegmentOrder], any FilmPictures) throws -> Void
  ) throws {
    let plan = plans[piece]
    let (before, all) = (Self.segments(in: plans[..<piece]), Self.segments(in: plans[...]))
    let orders = plan.segments.enumerated().map { index, holds in
      SegmentOrder(
        holds: holds, quarterTurns: track.quarterTurns,
        refused: before + index == 0 ? batch.refused : [], original: nil,
        manifest: { [batch, digest] staged in
          SegmentManifest(staged, of: batch, digest: digest, part: before + index + 1, parts: all).json
        })
    }
    try reader.withFilm(
      in: FileBytes(opening: path), name: path, track: track.index, keyDTS: plan.key.dts, limits: limits,
      cancellation: cancellation
    ) { try body(orders, $0) }
  }

  /// Returns the pictures as frames, the time of each in the file, and pictures in the same millisecond as the next.
  private static func frames(
    of track: VideoTrack, name: String, startMs: Int64, isDated: Bool
  ) -> (frames: [Frame], pts: [Int64: Int64], refused: [RefusedFrame]) {
    let isStitched = track.samples[0].timeMs != nil
    var frames: [Frame] = []
    var pts: [Int64: Int64] = [:]
    var refused: [RefusedFrame] = []
    for (number, sample) in track.samples.enumerated() {
      // A sample without a capture in a stitched film repeats the picture before.
      guard !isStitched || sample.timeMs != nil else { continue }
      let counted = startMs + track.milliseconds(sample.pts)
      let timeMs = isDated ? sample.timeMs ?? counted : counted
      if let last = frames.last, last.timeMs == timeMs {
        refused.append(RefusedFrame(source: last.source, reason: "the next one comes in the same millisecond"))
        frames.removeLast()
      }
      frames.append(Frame(source: "\(name)#\(number)", path: name, timeMs: timeMs))
      pts[timeMs] = sample.pts
    }
    return (frames, pts, refused)
  }

  /// Cuts the film into segments. Each belongs to the last key frame that is shown before it begins.
  private static func plans(of batch: Batch, _ track: VideoTrack, pts: [Int64: Int64]) -> [Plan] {
    var timeline = Timeline(intervalMs: batch.intervalMs, maxHoldMs: nil)
    let sizes = Dictionary(
      track.samples.map { ($0.pts, PixelSize(width: $0.width, height: $0.height)) }, uniquingKeysWith: { $1 })
    var holds: [FrameHold] = []
    for frame in batch.frames {
      let coded = pts[frame.timeMs].flatMap { sizes[$0] } ?? PixelSize(width: 0, height: 0)
      let size = coded.turned(track.quarterTurns)
      holds += timeline.append(
        Capture(source: frame.source, timeMs: frame.timeMs, width: size.width, height: size.height))
    }
    holds += timeline.finish(endMs: batch.endMs)
    var keys = track.keys[...]
    var plans: [Plan] = []
    for hold in holds {
      let placed = SegmentOrder.PlacedHold(hold: hold, pts: pts[hold.capture.timeMs] ?? 0, sampleStarts: nil)
      if hold.opensSegment {
        var isNew = plans.isEmpty
        while keys.count > 1, keys[keys.startIndex + 1].pts <= placed.pts {
          keys.removeFirst()
          isNew = true
        }
        if isNew { plans.append(Plan(key: keys[keys.startIndex], segments: [])) }
        plans[plans.count - 1].segments.append([])
      }
      let last = plans[plans.count - 1].segments.count - 1
      plans[plans.count - 1].segments[last].append(placed)
    }
    return plans
  }

  private static func stem(of path: String) -> String {
    let name = lastComponent(of: path)
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return name }
    return String(name[..<dot])
  }

  /// Reads unix milliseconds at the end of a name.
  private static func instant(in name: String, _ limits: Limits) -> Int64? {
    let digits = name.reversed().prefix { $0.isASCII && $0.isNumber }.reversed()
    guard digits.count == 12 || digits.count == 13, let instant = Int64(String(digits)) else { return nil }
    return limits.instants.contains(instant) ? instant : nil
  }

  /// Reads libavformat's `2026-01-08T08:05:12.340000Z`.
  private static func instant(of text: String?, _ limits: Limits) -> Int64? {
    guard let text else { return nil }
    let numbers = text.split { !($0.isASCII && $0.isNumber) }.compactMap { Int32($0) }
    guard numbers.count >= 6, (2_001...2_100).contains(numbers[0]) else { return nil }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1_900, numbers[1] - 1, numbers[2])
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
    let instant = Int64(timegm(&parts)) * 1_000 + Int64(numbers.count > 6 ? numbers[6] / 1_000 : 0)
    return limits.instants.contains(instant) ? instant : nil
  }
}
