import ArgumentParser
import Glibc
import SegmentEncoder
import Synchronization

struct EncodeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "encode",
    abstract: "Encode batches once, without a spool.",
    discussion: """
      For pipelines and batch engines. The batches stay where they are; done again, nothing changes. A line for each
      batch on standard output, or with --json an object.
      """)

  @Argument(help: ArgumentHelp("Directories and archives; - reads an archive from standard input.", valueName: "batch"))
  var batches: [String]

  @Option(name: .shortAndLong, help: ArgumentHelp("Where sessions go.", valueName: "dir"))
  var output: String

  @Option(
    help: ArgumentHelp("The session of batches that do not name theirs. (default: the name up to @)", valueName: "id"))
  var session: String?

  @Option(
    help: ArgumentHelp("Encode only every N-th batch of the list, from the I-th, counted from 0.", valueName: "i/n"))
  var shard: Shard?

  @Flag(help: "Results as JSON, one object a line.")
  var json = false

  @OptionGroup(title: "Encoding")
  var encoding: EncodingOptions

  func validate() throws {
    guard batches.count(where: { $0 == "-" }) <= 1 else {
      throw ValidationError("standard input can be one batch only")
    }
    if let session, SessionID(session) == nil {
      throw ValidationError("--session: use 1 to 128 of A–Z a–z 0–9 . _ -, not starting with a dot")
    }
  }

  func run() throws {
    let mine = batches.enumerated().filter { shard?.contains($0.offset) ?? true }.map(\.element)
    let list = WorkList()
    let worst = Mutex<ExitCode?>(nil)
    do {
      let staging = try Staging(output: output, worker: WorkerID())
      defer { staging.remove() }
      let index = SessionIndex()
      let options = encoding.encoder
      let group = ThreadGroup()
      for _ in 0..<min(encoding.threads, mine.count) {
        try group.start { [session, json] in
          let encoder = BatchEncoder(options, staging: staging, index: index)
          while let batch = list.element(of: mine) {
            let status = Self.encode(batch, session: session, with: encoder, json: json)
            if let status { worst.withLock { $0 = Self.graver($0, status) } }
          }
        }
      }
      group.join()
    } catch let error as DiskError {
      say("encoder-worker: \(error)")
      throw ExitStatus.of(error)
    }
    if let status = worst.withLock({ $0 }) { throw status }
  }

  private static func encode(
    _ batch: String, session: String?, with encoder: BatchEncoder, json: Bool
  ) -> ExitCode? {
    do {
      let receipt = try encoder.publish(batch, session: session)
      answer(json ? try receipt.json : line(receipt))
      for refused in receipt.refused { say("\(batch): refused \(refused.source): \(refused.reason)") }
      return nil
    } catch {
      switch Disposition(of: error, batch: batch) {
      case .quarantine(let reason):
        say("\(batch): \(reason); \(reason.advice)")
        return ExitStatus.badBatch
      case .retry, .handBack:
        say("encoder-worker: \(batch): \(error); nothing is lost, run it again when that is mended")
        return ExitStatus.of(error)
      }
    }
  }

  private static func line(_ receipt: Receipt) -> String {
    let what = receipt.duplicate ? "published before" : "published"
    return "\(receipt.batch): \(what): session \(receipt.session), \(receipt.segments) segments, "
      + "\(receipt.frames) frames, \(receipt.endMs - receipt.startMs) ms, \(receipt.bytes) bytes"
  }

  /// A failed machine outweighs a bad batch: the run is to be repeated.
  private static func graver(_ one: ExitCode?, _ other: ExitCode) -> ExitCode {
    guard let one else { return other }
    return one.rawValue > other.rawValue ? one : other
  }
}

/// A list that several threads work off.
private final class WorkList: Sendable {
  private let taken = Atomic<Int>(0)

  func element(of list: [String]) -> String? {
    let index = taken.add(1, ordering: .relaxed).oldValue
    return index < list.count ? list[index] : nil
  }
}

/// `I/N`: the I-th of N equal parts of a list.
struct Shard: ExpressibleByArgument {
  let index: Int
  let count: Int

  init?(argument: String) {
    let parts = argument.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) }
    guard parts.count == 2, let index = parts[0], let count = parts[1], count > 0, (0..<count).contains(index) else {
      return nil
    }
    self.index = index
    self.count = count
  }

  func contains(_ position: Int) -> Bool { position % count == index }
}
