import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import SegmentEncoder
@testable import Sessions

/// Frames from memory become the segments that a batch of them becomes.
@Suite struct FrameEncoderTests {
  private let scratch: ScratchDirectory
  private let id: SessionID

  init() throws {
    scratch = try ScratchDirectory()
    id = try #require(SessionID("phone"))
  }

  private static let startMs: Int64 = 1_767_859_512_000

  private func jpeg(_ number: Int = 0) throws -> [UInt8] {
    try Fixture("exact-1fps").bytes(String(format: "%04d.jpg", number))
  }

  private func encoder(_ options: BatchEncoder.Options = BatchEncoder.Options()) throws -> FrameEncoder {
    try FrameEncoder(session: id, options)
  }

  // MARK: the same as a batch

  /// The batches of the fixtures, and of the corpus in the nightly test.
  static let fixtures = Fixture.all + [Fixture("wide-colour")] + Fixture.corpus.prefix(5)

  @Test(arguments: fixtures) func segmentsAreThoseOfTheBatch(fixture: Fixture) throws {
    let options = BatchEncoder.Options()
    let store = MemoryStore()
    let receipt = try BatchEncoder(options, store: store).publish(fixture.path, session: "phone")[0]
    let expected = store.segments(of: receipt.session)
    let reader = try BatchSessions(
      reading: fixture.path, options: options.input.named("phone"), limits: options.limits, unpacker: nil
    ).readers[0]
    let batch = reader.batch
    var encoder = try FrameEncoder(
      session: batch.session, intervalMs: batch.intervalMs, capturesChanges: batch.capture == .onChange,
      metadata: batch.metadata.object == nil ? nil : batch.metadata.line)
    var segments: [Segment] = []
    var refused: [RefusedFrame] = []
    for frame in batch.frames {
      let captured = CapturedFrame(frame, try Self.bytes(of: frame, in: reader))
      do {
        segments += try encoder.append(captured)
      } catch FrameEncoderError.refused(let refusal) {
        refused.append(refusal)
      }
    }
    segments += try encoder.finish(endMs: batch.endMs, isFinal: batch.isFinal)
    #expect(segments.map(\.videoName) == expected.map(\.videoName))
    for (segment, other) in zip(segments, expected) {
      #expect(segment.video == other.video, "\(segment.videoName)")
      #expect(Self.facts(segment) == Self.facts(other), "\(segment.videoName)")
    }
    #expect(refused.map(\.source) == receipt.refused.filter { $0.reason.hasPrefix("decode ") }.map(\.source))
  }

  private static func bytes(of frame: Frame, in reader: BatchReader) throws -> [UInt8] {
    guard case .bytes(let bytes) = try reader.images(of: frame)[0] else { return [] }
    return bytes
  }

  /// The manifest without the members that name the batch, and its health. Each segment of a stream is a batch of its own.
  private static func facts(_ segment: Segment) -> [String: JSONValue] {
    var members = (try? JSONParser.parse(segment.manifest))?.object ?? [:]
    for name in ["batch", "batchDigest", "part", "parts", "manifestSha256", "refused", "touches", "health"] {
      members[name] = nil
    }
    return members
  }

  @Test func manifestsMakeASessionThatProgramsAccept() throws {
    var encoder = try encoder()
    var segments: [Segment] = []
    for number in 0..<12 {
      segments += try encoder.append(
        CapturedFrame(image: jpeg(number), timeMs: Self.startMs + Int64(number) * 1_100, source: "\(number).jpg"))
    }
    segments += try encoder.finish(isFinal: true)
    #expect(segments.count == 3 && segments.map(\.isFinal) == [false, false, true])
    _ = try scratch.directory("phone")
    for segment in segments {
      #expect(segment.frames.map(\.holdMs).reduce(0, +) == segment.endMs - segment.startMs)
      #expect(segment.sha256 == SHA256.hex(of: segment.video))
      try scratch.file("phone/" + segment.videoName, segment.video)
      try scratch.file("phone/" + segment.manifestName, segment.manifest)
    }
    // The session's views are made of the segments.
    #expect(try EncoderWorker.run("verify", "--repair", scratch.path("phone")).status == 0)
    let verified = try EncoderWorker.run("verify", scratch.path("phone"))
    #expect(verified.status == 0, "\(verified.text)")
    let film = scratch.path("film.mp4")
    #expect(try EncoderWorker.run("stitch", scratch.path("phone"), "--to", film).status == 0)
    #expect(try Probe(film).packets(of: 0).count >= 12)
  }

  // MARK: refusals

  /// Returns the error of appending a frame.
  private static func error(
    of frame: CapturedFrame, appendedTo encoder: inout FrameEncoder
  ) -> FrameEncoderError? {
    do {
      _ = try encoder.append(frame)
      return nil
    } catch { return error as? FrameEncoderError }
  }

  /// Returns the error of ending a session.
  private static func error(endingAt endMs: Int64, _ encoder: consuming FrameEncoder) -> FrameEncoderError? {
    do {
      _ = try encoder.finish(endMs: endMs)
      return nil
    } catch { return error as? FrameEncoderError }
  }

  private static func pixels(width: Int, height: Int, bytesPerRow: Int? = nil) -> CapturedFrame {
    CapturedFrame(
      pixels: [0, 0, 0, 0], isBGRA: true, isPremultiplied: true, width: width, height: height, bytesPerRow: bytesPerRow,
      timeMs: startMs + 1)
  }

  @Test func refusedFramesAreReportedAndTheEncoderGoesOn() throws {
    let (first, other) = (try jpeg(0), try jpeg(1))
    let cases = [
      (CapturedFrame(image: other, timeMs: Self.startMs), "is not after"),
      (CapturedFrame(image: other, timeMs: Self.startMs - 1), "is not after"),
      (CapturedFrame(image: other, timeMs: 0), "outside 2001 to 2100"),
      (CapturedFrame(image: other, timeMs: .max), "outside 2001 to 2100"),
      (CapturedFrame(image: other, timeMs: Self.startMs + 366 * 86_400_000 + 1_001), "a clock that jumped"),
      (CapturedFrame(image: [], timeMs: Self.startMs + 1), "empty"),
      (CapturedFrame(image: Array("text".utf8), timeMs: Self.startMs + 1), "decode"),
      (CapturedFrame(image: Array(other.prefix(300)), timeMs: Self.startMs + 1, source: "cut.jpg"), "decode cut.jpg"),
      (Self.pixels(width: 0, height: 1), "decode 1767859512001: 0×1 pixels"),
      (Self.pixels(width: -1, height: 1), "decode 1767859512001: -1×1 pixels"),
      (Self.pixels(width: .max, height: .max), "pixels, more than the limit of 8192 a side"),
      (Self.pixels(width: 9, height: 9, bytesPerRow: 8), "rows of 8 bytes for 9 pixels"),
      (Self.pixels(width: 9, height: 9, bytesPerRow: .max), "bytes for 9 pixels"),
      (Self.pixels(width: 9, height: 9), "4 bytes; 9×9 BGRA has 324"),
    ]
    var encoder = try encoder()
    #expect(try encoder.append(CapturedFrame(image: first, timeMs: Self.startMs)).isEmpty)
    for (frame, reason) in cases {
      let error = Self.error(of: frame, appendedTo: &encoder)
      guard case .refused(let refused)? = error else {
        Issue.record("\(reason): \(String(describing: error))")
        continue
      }
      #expect(refused.source == frame.source && refused.reason.contains(reason), "\(refused.reason)")
    }
    #expect(try encoder.append(CapturedFrame(image: other, timeMs: Self.startMs + 1_000)).isEmpty)
    let segments = try encoder.finish()
    #expect(segments.count == 1 && segments[0].frames.map(\.captureMs) == [Self.startMs, Self.startMs + 1_000])
    #expect(segments[0].refused.count == cases.count)
  }

  @Test func listOfRefusedFramesIsBounded() throws {
    var options = BatchEncoder.Options()
    options.limits.refusals = 5
    var encoder = try encoder(options)
    _ = try encoder.append(CapturedFrame(image: jpeg(), timeMs: Self.startMs))
    for _ in 0..<50 {
      let bad = CapturedFrame(image: [1], timeMs: Self.startMs + 1)
      #expect(Self.error(of: bad, appendedTo: &encoder) != nil)
    }
    let segments = try encoder.finish()
    #expect(segments[0].refused.count == 5)
  }

  @Test func sessionWithoutAFrameHasNoSegment() throws {
    let none = try encoder().finish()
    #expect(none.isEmpty)
    var encoder = try encoder()
    #expect(Self.error(of: CapturedFrame(image: [], timeMs: Self.startMs), appendedTo: &encoder) != nil)
    let segments = try encoder.finish()
    #expect(segments.isEmpty)
  }

  @Test func settingsThatCannotBeUsedAreRefused() throws {
    for intervalMs: Int64 in [0, -1, 3_600_001] {
      #expect(throws: FrameEncoderError.self) { _ = try FrameEncoder(session: id, intervalMs: intervalMs) }
    }
    for metadata in ["", "[]", "{", "{\"a\":\"" + String(repeating: "x", count: 1 << 17) + "\"}"] {
      #expect(throws: FrameEncoderError.self) { _ = try FrameEncoder(session: id, metadata: metadata) }
    }
    var encoder = try encoder()
    _ = try encoder.append(CapturedFrame(image: jpeg(), timeMs: Self.startMs))
    #expect(Self.error(endingAt: Self.startMs, encoder) != nil)
  }

  // MARK: masks

  @Test func maskThatCannotBeAppliedBlacksThePictureOut() throws {
    let fine = [Mask(x: 0, y: 0, width: 10, height: 10)]
    let bad = [
      Mask(x: .nan, y: 0, width: 1, height: 1), Mask(x: 0, y: 0, width: -1, height: 1),
      Mask(x: 0, y: 0, width: .infinity, height: 1), Mask(x: 0, y: 2e9, width: 1, height: 1),
    ]
    for mask in bad {
      var encoder = try encoder()
      _ = try encoder.append(CapturedFrame(image: jpeg(), timeMs: Self.startMs, masks: fine + [mask]))
      let segment = try encoder.finish()[0]
      let text = String(decoding: segment.manifest, as: UTF8.self)
      #expect(text.contains("blacked out: mask 1 is not a finite rectangle"))
      try scratch.file("black.mp4", segment.video)
      #expect(try Self.lightest(scratch.path("black.mp4")) <= 20)
    }
  }

  @Test func maskedPixelsAreCovered() throws {
    let white = [UInt8](repeating: 255, count: 4 * 64 * 64)
    var encoder = try encoder()
    _ = try encoder.append(
      CapturedFrame(
        pixels: white, isBGRA: false, isPremultiplied: false, width: 64, height: 64, timeMs: Self.startMs,
        masks: [Mask(x: 0, y: 0, width: 64, height: 64)]))
    try scratch.file("covered.mp4", try encoder.finish()[0].video)
    #expect(try Self.lightest(scratch.path("covered.mp4")) <= 20)
    encoder = try self.encoder()
    _ = try encoder.append(
      CapturedFrame(
        pixels: white, isBGRA: false, isPremultiplied: false, width: 64, height: 64, timeMs: Self.startMs))
    try scratch.file("white.mp4", try encoder.finish()[0].video)
    #expect(try Self.lightest(scratch.path("white.mp4")) >= 230)
  }

  /// The largest luma value of a video, decoded by stock ffmpeg.
  private static func lightest(_ path: String) throws -> UInt8 {
    let planes = try Tool.output(
      "ffmpeg", ["-v", "error", "-i", path, "-map", "0:v", "-pix_fmt", "gray", "-f", "rawvideo", "-"])
    return planes.max() ?? 0
  }

  // MARK: long holds, memory

  @Test func onChangeAPictureStaysOnScreen() throws {
    var encoder = try FrameEncoder(session: id, capturesChanges: true)
    _ = try encoder.append(CapturedFrame(image: jpeg(), timeMs: Self.startMs))
    let segments = try encoder.append(CapturedFrame(image: jpeg(1), timeMs: Self.startMs + 60_000))
    #expect(segments.count == 11 || segments.count == 12)
    #expect(segments.allSatisfy { $0.gapAfterMs == 0 && $0.frames.count == 1 })
    #expect(segments.map { $0.frames[0].isCaptured } == [true] + segments.dropFirst().map { _ in false })
    let last = try encoder.finish()
    #expect((segments + last).map { $0.endMs - $0.startMs }.reduce(0, +) == 61_000)
  }

  @Test func holdOfTooManySegmentsIsRefused() throws {
    var options = BatchEncoder.Options()
    options.limits.segments = 10
    var encoder = try FrameEncoder(session: id, capturesChanges: true, options)
    _ = try encoder.append(CapturedFrame(image: jpeg(), timeMs: Self.startMs))
    let late = try CapturedFrame(image: jpeg(), timeMs: Self.startMs + 60_000)
    let error = Self.error(of: late, appendedTo: &encoder)
    #expect(error?.description.contains("more than the limit of 10 segments") == true)
    #expect(Self.error(endingAt: Self.startMs + 60_000, encoder) != nil)
  }

}

extension InputOptions {
  fileprivate func named(_ session: String) -> InputOptions {
    var options = self
    options.session = session
    return options
  }
}
