import ArgumentParser
import SegmentEncoder

struct EncodeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "encode",
    abstract: "Encode batches once, without a spool.",
    discussion: """
      For pipelines and batch engines. The batches stay where they are; done again, nothing changes. A line for each batch on standard output, or with --json an object. SIGTERM or SIGINT: what is being encoded is abandoned, exit status 75; run it again for the rest.
      """)

  @Argument(
    help: ArgumentHelp("Directories and archives; - reads an archive from standard input.", valueName: "batch"),
    completion: .file())
  var batches: [String]

  @Option(name: .shortAndLong, help: ArgumentHelp("Where sessions go.", valueName: "dir"), completion: .directory)
  var output: String

  @OptionGroup
  var naming: NamingOptions

  @Option(
    help: ArgumentHelp("Encode only every N-th batch of the list, from the I-th, counted from 0.", valueName: "i/n"))
  var shard: Shard?

  @OptionGroup
  var events: EventOptions

  @Flag(help: "Results as JSON, one object a line.")
  var json = false

  @OptionGroup
  var settings: SettingsOption

  @OptionGroup(title: "Encoding")
  var encoding: EncodingOptions

  func validate() throws {
    guard batches.count(where: { $0 == "-" }) <= 1 else {
      throw ValidationError("standard input can be one batch only")
    }
  }

  func run() throws {
    try reportingFailures {
      let mine = batches.enumerated().filter { shard?.contains($0.offset) ?? true }.map(\.element)
      let options = try encoding.encoder()
      let signals = try TerminationSignals()
      let staging = try Staging(output: output, worker: WorkerID())
      defer { staging.remove() }
      let index = SessionIndex(sentry: events.sentry)
      let memory = KeyFrameMemory()
      let list = WorkList(mine)
      var progress = Progress()
      let work = Result {
        try list.workOff(
          threads: encoding.threads, signals: signals,
          tick: {
            progress.show(list.doneCount, of: mine.count, "batches")
            _ = index.catchUp(staging)
          }
        ) {
          [session = naming.session, json] in
          let encoder = BatchEncoder(options, staging: staging, index: index, memory: memory)
          return { Self.encode($0, session: session, with: encoder, json: json, list) }
        }
      }
      progress.finish()
      let laggards = index.catchUp(staging, all: true)
      for laggard in laggards { say("session \(laggard.session): \(laggard.error); run it again when that is mended") }
      if let profile = options.profile { say(lines: profile.table) }
      try work.get()
      if let own = laggards.first(where: \.isOurs) { throw ExitStatus.of(own.error) }
    }
  }

  private static func encode(
    _ batch: String, session: String?, with encoder: BatchEncoder, json: Bool, _ list: WorkList<String>
  ) -> ExitCode? {
    do {
      let receipt = try encoder.publish(batch, session: session, isCancelled: { list.isCancelled })
      answer(json ? receipt.json : line(receipt).oneLine)
      for refused in receipt.refused { say("\(batch): refused \(refused.source): \(refused.reason)") }
      for warning in receipt.warnings { say("\(batch): \(warning)") }
      return nil
    } catch {
      let disposition = Disposition(of: error, batch: batch)
      if json { answer(disposition.json(batch: batch, error)) }
      switch disposition {
      case .quarantine(let reason):
        say("\(batch): \(reason); \(reason.advice)")
        return ExitStatus.badBatch
      case .handBack: return ExitStatus.temporaryFailure
      case .retry, .unknown:
        say("encoder-worker: \(batch): \(error); nothing is lost, run it again when that is mended", .error)
        return ExitStatus.of(error)
      }
    }
  }

  private static func line(_ receipt: Receipt) -> String {
    let what = receipt.duplicate ? "published before" : "published"
    return "\(receipt.batch): \(what): session \(receipt.session), \(count(receipt.segments, "segment")), "
      + "\(count(receipt.frames, "frame")), \(receipt.endMs - receipt.startMs) ms, \(receipt.bytes) bytes"
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
