import ArgumentParser
import FileSystem
import FrameBatches
import SegmentEncoder
import Sessions
import Synchronization

/// Encodes the batches of a call on several threads. A folder of more pictures than one batch takes becomes several batches, which
/// the threads share.
final class BatchRun: Sendable {
  /// The result of a batch, or the reason why nothing of it is published.
  typealias Outcome = Result<[Receipt], any Error>

  private enum Work: Sendable {
    /// The number counts the batches of the call.
    case batch(SelectedBatch, number: Int)
    case part(BatchEncoder.ReadBatch, of: SplitFolder)
  }

  private let runner: ParallelRunner<Work>
  private let limits: PartLimits
  private let accepts: Bool
  private let stages = Mutex<[BatchStage]>([])
  private let folders = Mutex<[SplitFolder]>([])
  /// Nil if the place of no batch depends on another.
  private let turns: InputTurns?

  /// - Parameters:
  ///   - row: the inputs in the order of the call; nil for batches that do not depend on each other.
  ///   - accepts: whether to publish batches of which most pictures are not shown.
  init(_ batches: [SelectedBatch], _ limits: PartLimits, row: InputRow? = nil, accepts: Bool = false) {
    runner = ParallelRunner(batches.enumerated().map { .batch($1, number: $0) })
    (self.limits, self.accepts) = (limits, accepts)
    turns = batches.count > 1 ? row.flatMap { $0.isOrdered ? InputTurns($0) : nil } : nil
  }

  /// Whether a signal has stopped it.
  var isCancelled: Bool { runner.isCancelled }

  /// Works through the batches: see ``ParallelRunner/workOff(threads:signals:tick:_:)``. At the end, it says how many batches each
  /// folder has become.
  ///
  /// - Parameters:
  ///   - unit: the name of several batches.
  ///   - tick: called about once a second on the caller's thread.
  ///   - makeEncoder: called once on each thread.
  ///   - check: refuses a batch that was read.
  ///   - conclude: reports the outcome of a batch, by the path of its folder or file; returns an exit status if it failed.
  func workOff(
    threads: Int, signals: TerminationSignals, unit: String, tick: () -> Void = {},
    makeEncoder: @escaping @Sendable () -> BatchEncoder,
    check: @escaping @Sendable (String, BatchEncoder.ReadBatch) throws -> Void = { _, _ in },
    conclude: @escaping @Sendable (String, Outcome) -> ExitCode?
  ) throws {
    var progress = Progress()
    let end = Result {
      try runner.workOff(
        threads: threads, signals: signals,
        tick: {
          let fractions = stages.withLock { $0.reduce(0) { $0 + $1.fraction } }
          progress.show(runner.doneCount, partly: fractions, of: runner.count, unit)
          tick()
        }
      ) { [self] in
        let encoder = makeEncoder()
        stages.withLock { $0.append(encoder.stage) }
        return { [self] work in
          switch work {
          case .part(let part, let folder): return publish(part, of: folder, with: encoder, signals, conclude)
          case .batch(let batch, let number):
            do {
              let read = try place(number, batch.path) {
                if let refusal = batch.refusal { throw refusal }
                let read = try encoder.read(batch.path, files: batch.files, cancellation: runner.cancellation)
                try check(batch.path, read)
                return read
              }
              let folder = SplitFolder(batch.path, pictures: read.frames)
              let parts = try read.parts(limits)
              if parts.count > 1 { divide(parts, of: folder, signals) }
              return publish(parts[0], of: folder, with: encoder, signals, conclude)
            } catch {
              return conclude(batch.path, .failure(error))
            }
          }
        }
      }
    }
    progress.finish()
    for folder in folders.withLock({ $0 }) { say(folder.text) }
    try end.get()
  }

  /// Reads a batch, and gives it its place behind those before.
  private func place(
    _ number: Int, _ path: String, _ read: () throws -> BatchEncoder.ReadBatch
  ) throws -> BatchEncoder.ReadBatch {
    guard let turns else { return try read() }
    let read = Result(catching: read)
    return try turns.take(number) { row in
      do {
        switch try read.get().place(in: &row, named: path) {
        case .shown(let placed): return placed
        case .same(let other): throw SamePictures(path: path, other: other)
        }
      } catch {
        if case .failure = read { row.lose(path) }
        throw error
      }
    }
  }

  private func divide(_ parts: [BatchEncoder.ReadBatch], of folder: SplitFolder, _ signals: TerminationSignals) {
    let more = parts.dropFirst()
    folder.begin(parts: parts.count, ends: more.filter(\.isFinal))
    folders.withLock { $0.append(folder) }
    runner.add(more.filter { !$0.isFinal }.map { .part($0, of: folder) }, signals)
  }

  private func publish(
    _ batch: BatchEncoder.ReadBatch, of folder: SplitFolder, with encoder: BatchEncoder, _ signals: TerminationSignals,
    _ conclude: (String, Outcome) -> ExitCode?
  ) -> ExitCode? {
    let outcome = Outcome {
      try encoder.publish(batch, isAccepted: { [accepts] _ in accepts }, cancellation: runner.cancellation)
    }
    let ends = folder.record(outcome)
    if !ends.isEmpty { runner.add(ends.map { .part($0, of: folder) }, signals) }
    return conclude(folder.path, outcome)
  }
}

/// An input with the pictures of another one, which are shown once.
struct SamePictures: ClassifiedError {
  var kind: Failure.Kind { .input }
  let path: String
  let other: String

  var description: String { "the same pictures as in \(other), which are shown once" }
}

/// The turns in which inputs get their places: whichever thread has read them first, in the order of the call.
private final class InputTurns: Sendable {
  private let next = Monitor(0)
  private let row: Mutex<InputRow>

  init(_ row: InputRow) { self.row = Mutex(row) }

  /// Threads begin inputs in order, so each waits only for others that are being read.
  func take<R: Sendable>(_ number: Int, _ body: (inout InputRow) throws -> R) throws -> R {
    next.wait { $0 == number ? .found(()) : .wait(ms: nil) }
    defer { next.change { $0 += 1 } }
    return try row.withLock { try body(&$0) }
  }
}

/// A folder that has become several batches, and what has become of these.
private final class SplitFolder: Sendable {
  let path: String
  private let pictures: Int

  private struct State {
    var parts = 1
    var new = 0
    var duplicates = 0
    var failed = 0
    /// The parts that end their sessions. They wait for the others, so that no session is complete without its middle.
    var ends: [BatchEncoder.ReadBatch] = []

    var left: Int { parts - new - duplicates - failed }
  }

  private let state = Mutex(State())

  init(_ path: String, pictures: Int) { (self.path, self.pictures) = (path, pictures) }

  func begin(parts: Int, ends: [BatchEncoder.ReadBatch]) {
    state.withLock { ($0.parts, $0.ends) = (parts, ends) }
  }

  /// - Returns: the parts that can begin now.
  func record(_ outcome: BatchRun.Outcome) -> [BatchEncoder.ReadBatch] {
    state.withLock { state in
      switch outcome {
      case .failure: state.failed += 1
      case .success(let receipts) where receipts.allSatisfy({ $0.refusal != nil }): state.failed += 1
      case .success(let receipts) where receipts.contains(where: { !$0.refusedSessions.isEmpty }): state.failed += 1
      case .success(let receipts) where receipts.allSatisfy(\.duplicate): state.duplicates += 1
      case .success: state.new += 1
      }
      guard state.failed == 0, state.left == state.ends.count else { return [] }
      defer { state.ends = [] }
      return state.ends
    }
  }

  var text: String {
    let state = state.withLock { $0 }
    let counts = [
      (state.new, "published"), (state.duplicates, "published before"), (state.failed, "failed"),
      (state.left, "not begun"),
    ]
    return "\(path): \(count(pictures, "picture")) in \(count(state.parts, "batch", "batches")): "
      + counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
      + (state.failed > 0 && !state.ends.isEmpty
        ? "; the last one waits for the others, because it ends the session" : "")
  }
}
