// Breaks streams off at every step, and checks that nothing of them is left: BrokenStreams WAY BATCH [sandbox]
// It is a program of its own: files, threads, children and memory can be counted where no other test runs, and the decoder fork server
// starts before any thread.

import FileSystem
import Glibc
import SegmentEncoder
import Synchronization

/// A way in which streams end before their end.
enum Way: String {
  case cancelled, crowd, left, source, encoder, abandoned, store, decoder, server, descriptor, thread
}

@main enum BrokenStreams {
  private static let server = Mutex<DecoderForkServer?>(nil)
  private static let sessions = Atomic(0)

  static func main() throws {
    let words = CommandLine.arguments
    guard words.count > 2, let way = Way(rawValue: words[1]) else { exit(64) }
    let files = try Leftovers.files()
    if words.contains("sandbox") {
      let started = try DecoderForkServer(limits: options().limits)
      server.withLock { $0 = started }
    }
    let result = Monitor<Result<String, any Error>?>(nil)
    Task.detached {
      do {
        let text = try await check(way, batch: words[2], before: files)
        result.change { $0 = .success(text) }
      } catch { result.change { $0 = .failure(error) } }
    }
    switch result.wait(until: { $0.map { .found($0) } ?? .wait(ms: nil) }) {
    case .success(let text): print(text)
    case .failure(let error):
      print("\(words.dropFirst().joined(separator: " ")): \(error)")
      exit(1)
    }
  }

  // MARK: leftovers

  /// Maximum number of idle decoders of a fork server, and of memory files that ended ones have left for the next.
  private static let (idleDecoders, retiredMemories) = (4, 4)
  /// Less than the frame of a stream that is kept.
  private static let fewBytes = 3 << 18

  /// Breaks streams off three times: the second and the third time need as much memory.
  private static func check(_ way: Way, batch: String, before files: [String]) async throws -> String {
    var (streams, threads, memory, growth) = (0, 0, 0, 0)
    let isSandboxed = server.withLock { $0 } != nil
    for round in 1...(way == .server || way == .thread ? 1 : 3) {
      streams += try await breakOff(way, batch)
      try await waitUntil("no source exists (\(way))") { Frames.existing.load(ordering: .relaxed) == 0 }
      let children = Leftovers.children(of: getpid())
      if isSandboxed {
        try require(children.count == 1, "\(children.count) children beside the fork server")
        try await waitUntil("decoders have ended") { decoders().count <= idleDecoders }
        // A decoder has a socket and a memory; the fork server has a socket.
        try await waitUntil("few files are open") {
          try Leftovers.files().count - files.count <= 1 + 2 * idleDecoders + retiredMemories
        }
      } else {
        try require(children.isEmpty, "\(children.count) children")
        try await waitUntil("no file is open") { try Leftovers.files() == files }
      }
      if round == 1 { threads = try Leftovers.threads() }
      try await waitUntil("no thread is left") { try Leftovers.threads() <= threads + ThreadGroup.processors }
      try await waitUntil("no memory is left") { round < 3 || Leftovers.memory() - memory < fewBytes }
      growth = Leftovers.memory() - memory
      memory += growth
    }
    server.withLock { $0 = nil }
    try await waitUntil("no process is left") { Leftovers.children(of: getpid()).isEmpty }
    try await waitUntil("no file is open in the end") { try Leftovers.files() == files }
    return "\(way): \(streams) streams, \(threads) threads, \(memory) bytes in use (\(growth) more than a round before)"
  }

  // MARK: streams

  static func options() -> BatchEncoder.Options {
    var options = BatchEncoder.Options()
    options.decoders = server.withLock { $0 }
    // x264 decides, not our own limit. No decoder is too slow for a test.
    (options.limits.side, options.limits.decodeSeconds) = (20_000, 600)
    return options
  }

  /// A session that no other stream has.
  static func session() throws -> SessionID {
    guard let session = SessionID("s\(sessions.add(1, ordering: .relaxed).newValue)") else { throw Fault("session") }
    return session
  }

  /// Reads a stream.
  ///
  /// - Returns: the videos; of the first `count` segments, after which the loop is left.
  static func read(_ frames: Frames, leavingAfter count: Int = .max) async throws -> [[UInt8]] {
    var videos: [[UInt8]] = []
    for try await segment in frames.segments(of: try session(), endMs: Frames.timeMs(Frames.count), options()) {
      videos.append(segment.video)
      if videos.count == count { break }
    }
    return videos
  }

  /// The videos of the first frames of a stream, whose last frame leaves the screen when the next one would come.
  static func videos(ofFirst count: Int) throws -> [[UInt8]] {
    var encoder = try FrameEncoder(session: try session())
    var segments: [Segment] = []
    for number in 0..<count { segments += try encoder.append(Frames.frame(number)) }
    return (segments + (try encoder.finish(endMs: Frames.timeMs(count)))).map(\.video)
  }

  /// - Returns: the number of streams.
  private static func breakOff(_ way: Way, _ batch: String) async throws -> Int {
    switch way {
    case .cancelled: try await cancelled()
    case .crowd: try await crowd()
    case .left: try await left()
    case .source: try await source()
    case .encoder: try await encoder()
    case .abandoned: try abandoned()
    case .store: try store(batch)
    case .decoder: try await decoder()
    case .server: try await deadServer()
    case .descriptor: try descriptor()
    case .thread: try await thread()
    }
  }

  private static let cancellations: [Frames.Event] = [.waits, .ends, .cancels, .races]

  /// Requires that a cancelled stream ended so. A stream that was faster than its cancellation may have ended well.
  private static func requireCancelled(_ result: Result<[[UInt8]], any Error>, _ event: Frames.Event) throws {
    switch result {
    case .success: try require(event == .races, "\(event): no error")
    case .failure(let error): try require(error is CancellationError, "\(event): \(error)")
    }
  }

  private static func cancelled() async throws -> Int {
    for event in cancellations {
      for place in 0...Frames.count {
        let frames = Frames(event, at: place)
        let task = Task.detached { try await read(frames) }
        try await waitUntil("frame \(place) is asked for") { frames.isReached }
        task.cancel()
        try requireCancelled(await task.result, event)
      }
    }
    for place in 1..<Frames.count { try await Task.detached { try appendCancelled(at: place) }.value }
    return cancellations.count * (Frames.count + 1) + Frames.count - 1
  }

  /// Cancels the task that uses an encoder directly.
  private static func appendCancelled(at place: Int) throws {
    var encoder = try FrameEncoder(session: try session(), options())
    for number in 0..<place { _ = try encoder.append(Frames.frame(number)) }
    withUnsafeCurrentTask { $0?.cancel() }
    do {
      _ = try encoder.append(Frames.frame(place))
      throw Fault("no error in a cancelled task at \(place)")
    } catch FrameEncoderError.ended {}
    let segments = try encoder.finish()
    try require(segments.isEmpty, "a segment in a cancelled task")
  }

  /// Many streams at once.
  private static func crowd() async throws -> Int {
    var streams: [(frames: Frames, event: Frames.Event, task: Task<[[UInt8]], any Error>)] = []
    for place in 0..<Frames.count {
      for event in cancellations {
        let frames = Frames(event, at: place)
        streams.append((frames, event, Task.detached { try await read(frames) }))
      }
    }
    for (frames, event, task) in streams {
      try await waitUntil("\(event)") { frames.isReached }
      task.cancel()
      try requireCancelled(await task.result, event)
    }
    return streams.count
  }

  /// Loops that are left after each segment, and after none.
  private static func left() async throws -> Int {
    let whole = try videos(ofFirst: Frames.count)
    for count in 1...whole.count {
      let videos = try await read(Frames(.fails, at: .max), leavingAfter: count)
      try require(videos == Array(whole.prefix(count)), "left after \(count): \(videos.count) segments")
    }
    _ = Frames(.fails, at: 0).segments(of: try session(), options()).makeAsyncIterator()
    return whole.count + 1
  }

  private static func source() async throws -> Int {
    for place in 0...Frames.count {
      do {
        _ = try await read(Frames(.fails, at: place))
        throw Fault("no error of the source at \(place)")
      } catch is Frames.SourceFailure {}
    }
    return Frames.count + 1
  }

  private static func encoder() async throws -> Int {
    for place in 0..<Frames.count {
      var encoder = try FrameEncoder(session: try session(), options())
      var (segments, errors): ([Segment], Int) = ([], 0)
      for number in 0..<Frames.count {
        do {
          segments += try encoder.append(number == place ? Frames.wide(number) : Frames.frame(number))
        } catch FrameEncoderError.ended { errors += 1 }
      }
      do { segments += try encoder.finish() } catch FrameEncoderError.ended { errors += 1 }
      // The picture is encoded with the next frame, or at the end. After that each frame is refused.
      try require(errors == max(1, Frames.count - 1 - place), "wide frame \(place): \(errors) errors")
      try require(segments.map(\.video) == videos(ofFirst: place), "wide frame \(place): \(segments.count) segments")
      do {
        _ = try await read(Frames(.isTooWide, at: place))
        throw Fault("no error of the wide frame \(place)")
      } catch FrameEncoderError.ended {}
    }
    return 2 * Frames.count
  }

  private static func abandoned() throws -> Int {
    for count in 0...Frames.count {
      var encoder = try FrameEncoder(session: try session(), options())
      for number in 0..<count { _ = try encoder.append(Frames.frame(number)) }
    }
    return Frames.count + 1
  }
}
