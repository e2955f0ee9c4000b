// The failures of stores, of decoder processes and of the machine.

import FileSystem
import Glibc
import SegmentEncoder
import Synchronization

/// Kills the decoders of this process, if there are any.
func killDecoders() {
  for process in decoders() { kill(process, SIGKILL) }
}

/// The decoder processes, also those that have ended and were not waited for.
func decoders() -> [Int32] { Leftovers.children(of: getpid()).flatMap(Leftovers.children) }

extension BrokenStreams {
  /// A store that is out of order.
  private struct BrokenStore: SegmentStore {
    struct Outage: Error {}

    func publish(_ segments: [Segment], of session: SessionID) throws { throw Outage() }
  }

  static func store(_ batch: String) throws -> Int {
    let encoder = BatchEncoder(options(), store: BrokenStore())
    for _ in 0..<24 {
      do {
        _ = try encoder.publish(batch, session: "s")
        throw Fault("no error of the store")
      } catch is BrokenStore.Outage {}
    }
    return 24
  }

  /// Encodes a stream whose frames are appended again after a failure of the machine.
  ///
  /// - Parameters:
  ///   - failed: called after each failure.
  ///   - before: called with the number of each frame.
  private static func encodeStubbornly(failed: () -> Void = {}, before: (Int) -> Void = { _ in }) throws {
    var encoder = try FrameEncoder(session: try session(), options())
    var segments: [Segment] = []
    for number in 0..<Frames.count {
      before(number)
      while true {
        do {
          segments += try encoder.append(Frames.frame(number))
          break
        } catch FrameEncoderError.environment { failed() }
      }
    }
    segments += try encoder.finish(endMs: Frames.timeMs(Frames.count))
    try require(try segments.map(\.video) == videos(ofFirst: Frames.count), "other segments")
  }

  static func decoder() async throws -> Int {
    for place in 0..<Frames.count {
      try encodeStubbornly(before: { if $0 == place { killDecoders() } })
      do {
        let videos = try await read(Frames(.kills, at: place))
        try require(place == 0 && videos.count == 4, "killed at \(place): no error")
      } catch FrameEncoderError.environment {}
    }
    // At any time, also while decoders work and while they start.
    let encoders = ThreadGroup()
    let unfinished = Atomic(3)
    let faults = Mutex<[any Error]>([])
    for _ in 0..<3 {
      try encoders.start {
        do { try encodeStubbornly() } catch { faults.withLock { $0.append(error) } }
        unfinished.subtract(1, ordering: .relaxed)
      }
    }
    for _ in 0..<50 where unfinished.load(ordering: .relaxed) > 0 {
      killDecoders()
      usleep(3_000)
    }
    encoders.join()
    if let fault = faults.withLock({ $0.first }) { throw fault }
    return 2 * Frames.count + 3
  }

  /// The fork server dies. No frame can be decoded any more.
  static func deadServer() async throws -> Int {
    var encoder = try FrameEncoder(session: try session(), options())
    _ = try encoder.append(Frames.frame(0))
    let (servers, decoders) = (Leftovers.children(of: getpid()), decoders())
    try require(servers.count == 1 && !decoders.isEmpty, "no decoder")
    for server in servers { kill(server, SIGKILL) }
    try await waitUntil("the decoders end") { !decoders.contains(where: Leftovers.isRunning) }
    for _ in 0..<3 {
      do {
        _ = try encoder.append(Frames.frame(1))
        throw Fault("no error without a fork server")
      } catch FrameEncoderError.environment {}
    }
    let segments = try encoder.finish(endMs: Frames.timeMs(1))
    try require(try segments.map(\.video) == videos(ofFirst: 1), "other segments")
    do {
      _ = try await read(Frames(.fails, at: .max))
      throw Fault("no error without a fork server")
    } catch FrameEncoderError.environment {}
    return 2
  }

  // MARK: limits of the machine

  /// Limits a resource of this process, and returns the limit before.
  private static func limit(_ resource: __rlimit_resource, to count: Int) -> Int {
    var limits = rlimit()
    getrlimit(.init(resource.rawValue), &limits)
    defer {
      limits.rlim_cur = rlim_t(count)
      setrlimit(.init(resource.rawValue), &limits)
    }
    return Int(limits.rlim_cur)
  }

  /// There are too few descriptors for another decoder: none, one, and so on.
  static func descriptor() throws -> Int {
    // The fork server has its first decoder already.
    try encodeStubbornly()
    let free = dup(0)
    close(free)
    var failures = 0
    let most = limit(RLIMIT_NOFILE, to: Int(free))
    defer { _ = limit(RLIMIT_NOFILE, to: most) }
    try encodeStubbornly(failed: {
      failures += 1
      _ = limit(RLIMIT_NOFILE, to: Int(free) + failures)
    })
    try require(failures > 0, "no error without descriptors")
    return 2
  }

  /// No thread can be started for the first stream. The superuser has no such limit.
  static func thread() async throws -> Int {
    let most = limit(__RLIMIT_NPROC, to: 0)
    do {
      _ = try await read(Frames(.fails, at: .max))
      throw Fault("no error without a thread")
    } catch FrameEncoderError.environment {}
    _ = limit(__RLIMIT_NPROC, to: most)
    let videos = try await read(Frames(.fails, at: .max))
    try require(try videos == self.videos(ofFirst: Frames.count), "other segments")
    return 2
  }
}
