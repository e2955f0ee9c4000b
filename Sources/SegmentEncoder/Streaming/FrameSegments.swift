// The form of ``FrameEncoder`` for Swift concurrency.

import Encoding
import FrameBatches

extension AsyncSequence where Self: Sendable, Element == CapturedFrame {
  /// Encodes the frames of a session into segments.
  ///
  /// The next frame is asked for once the one before is encoded. The work runs on threads of its own. Frames that are refused are
  /// left out; ``Segment/refused`` lists them. A cancelled task ends the iteration with `CancellationError`. Nothing is left then.
  ///
  /// ```swift
  /// for try await segment in frames.segments(of: session) { try await upload(segment.video, segment.manifest) }
  /// ```
  ///
  /// - Parameters:
  ///   - session: the name of the session.
  ///   - intervalMs: the nominal interval of captures, in milliseconds.
  ///   - capturesChanges: whether frames are captured when the picture changes; see ``FrameEncoder``.
  ///   - metadata: a JSON object that each manifest repeats.
  ///   - endMs: when the last frame leaves the screen, in unix milliseconds; by default one interval after its capture.
  ///   - isFinal: whether the session ends with the last frame.
  ///   - options: how frames are decoded and encoded.
  /// - Returns: the segments, each as soon as it closes. The iteration throws ``FrameEncoderError``, and the errors of the frames'
  ///   sequence.
  public func segments(
    of session: SessionID, intervalMs: Int64 = 1_000, capturesChanges: Bool = false, metadata: String? = nil,
    endMs: Int64? = nil, isFinal: Bool = false, _ options: BatchEncoder.Options = BatchEncoder.Options()
  ) -> some AsyncSequence<Segment, any Error> & Sendable {
    FrameSegments(frames: self) {
      let encoder = try FrameEncoder(
        session: session, intervalMs: intervalMs, capturesChanges: capturesChanges, metadata: metadata, options)
      let thread: EncodingThread
      do { thread = try EncodingThread.join() } catch { throw FrameEncoderError.environment(error) }
      return EncodingActor(encoder, on: thread, endMs: endMs, isFinal: isFinal)
    }
  }
}

/// The segments of a sequence of frames.
private struct FrameSegments<Frames: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Frames.Element == CapturedFrame {
  let frames: Frames
  let start: @Sendable () throws -> EncodingActor

  func makeAsyncIterator() -> Iterator { Iterator(frames: frames.makeAsyncIterator(), start: start) }

  struct Iterator: AsyncIteratorProtocol {
    var frames: Frames.AsyncIterator
    let start: @Sendable () throws -> EncodingActor
    private var encoder: EncodingActor?
    private var ready: ArraySlice<Segment> = []
    private var isAtEnd = false

    init(frames: Frames.AsyncIterator, start: @escaping @Sendable () throws -> EncodingActor) {
      (self.frames, self.start) = (frames, start)
    }

    mutating func next() async throws -> Segment? {
      while true {
        if let segment = ready.popFirst() { return segment }
        if isAtEnd { return nil }
        do {
          ready = try await more()[...]
        } catch {
          (isAtEnd, encoder) = (true, nil)
          throw Task.isCancelled ? CancellationError() : error
        }
      }
    }

    private mutating func more() async throws -> [Segment] {
      try Task.checkCancellation()
      let encoder = try self.encoder ?? start()
      self.encoder = .some(encoder)
      let frame = try await frames.next()
      // Some sequences just end when their task is cancelled: AsyncStream does.
      try Task.checkCancellation()
      if let frame { return try await encoder.append(frame) }
      (isAtEnd, self.encoder) = (true, nil)
      return try await encoder.finish()
    }
  }
}

/// An encoder on its thread.
private actor EncodingActor {
  private let thread: EncodingThread
  private let endMs: Int64?
  private let isFinal: Bool
  private var encoder: FrameEncoder?
  private var isEmpty = true
  private var firstRefusal: FrameEncoderError?

  init(_ encoder: consuming FrameEncoder, on thread: EncodingThread, endMs: Int64?, isFinal: Bool) {
    (self.thread, self.endMs, self.isFinal) = (thread, endMs, isFinal)
    self.encoder = .some(encoder)
  }

  deinit { thread.leave() }

  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  func append(_ frame: CapturedFrame) throws -> [Segment] {
    do {
      let segments = try encoder?.append(frame) ?? []
      isEmpty = false
      return segments
    } catch FrameEncoderError.refused(let refused) {
      firstRefusal = firstRefusal ?? .refused(refused)
      return []
    }
  }

  /// - Throws: the first refusal if no frame was taken.
  func finish() throws -> [Segment] {
    if isEmpty, let firstRefusal { throw firstRefusal }
    guard let encoder = encoder.take() else { return [] }
    return try encoder.finish(endMs: endMs, isFinal: isFinal)
  }
}
