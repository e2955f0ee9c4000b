import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import SegmentEncoder
import Sessions
import Synchronization
import WorkQueues

struct EncodeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "encode",
    abstract: "Encode batches once, without a spool.",
    discussion: """
      For pipelines and batch engines. The command does not change or move the batches, and a second run changes nothing. It prints a line for each batch, or with --json an object. SIGTERM or SIGINT: it abandons the batches in work and exits with 75; run it again for the rest.
      """)

  @OptionGroup
  var selection: BatchSelection

  @Option(
    name: .shortAndLong, help: ArgumentHelp("The directory for sessions.", valueName: "dir"), completion: .directory)
  var output: String

  @OptionGroup
  var naming: NamingOptions

  @OptionGroup
  var events: EventOptions

  @Flag(help: "Print results as JSON, one object a line.")
  var json = false

  @OptionGroup
  var settings: SettingsOption

  @OptionGroup(title: "Encoding")
  var encoding: EncodingOptions

  func run() throws {
    try reportingFailures {
      try SessionDirectory.requireOutside(output)
      let mine = try selection.choices(output: output)
      if mine.isEmpty { say("no batch to encode") }
      let options = try encoding.encoder()
      let signals = try TerminationSignals()
      let staging = try Staging(output: output, worker: WorkerID())
      defer { staging.remove() }
      let index = SessionViews(sentry: events.sentry)
      let memory = KeyFrameCache()
      let list = ParallelRunner(mine)
      let stages = Stages()
      var progress = Progress()
      let work = Result {
        try list.workOff(
          threads: encoding.threads, signals: signals,
          tick: {
            progress.show(list.doneCount, partly: stages.fractions, of: mine.count, "batches")
            _ = index.flushPending(staging)
          }
        ) {
          [session = naming.session, output, json] in
          let encoder = BatchEncoder(options, staging: staging, index: index, memory: memory)
          stages.add(encoder.stage)
          return { Self.encode($0, session: session, options, with: encoder, output: output, json: json, list) }
        }
      }
      progress.finish()
      let outdatedViews = index.flushPending(staging, all: true)
      for outdated in outdatedViews {
        say("session \(outdated.session): \(outdated.error); run it again when that is mended")
      }
      if let profile = options.profile { say(lines: table(profile.rows)) }
      try work.get()
      if let own = outdatedViews.first(where: \.isOurs) { throw ExitStatus.of(own.error) }
    }
  }

  private static func encode(
    _ choice: BatchSelection.BatchArgument, session: String?, _ options: BatchEncoder.Options,
    with encoder: BatchEncoder,
    output: String, json: Bool, _ list: ParallelRunner<BatchSelection.BatchArgument>
  ) -> ExitCode? {
    let batch = choice.path
    do {
      if let refusal = choice.refusal { throw refusal }
      let isCancelled = { list.isCancelled }
      let receipts = try encoder.publish(
        encoder.read(
          batch, files: choice.files, options: InputOptions(session: session), isCancelled: isCancelled),
        isCancelled: isCancelled)
      for receipt in receipts {
        answer(json ? receipt.json : line(receipt, output: output).oneLine)
        for refused in receipt.refused { say("\(batch): refused \(refused.source): \(refused.reason)") }
        for warning in receipt.warnings { say("\(batch): \(warning)") }
      }
      return nil
    } catch {
      let disposition = Disposition(of: explained(error, batch, options), batch: batch)
      if json { answer(disposition.json(batch: batch, error)) }
      switch disposition {
      case .quarantine(let reason):
        say("\(batch): \(reason); \(reason.advice)")
        return ExitStatus.badBatch
      case .handBack: return ExitStatus.temporaryFailure
      case .retry, .unknown:
        say("encoder-worker: \(batch): \(error); nothing is lost, fix it and run again", .error)
        return ExitStatus.of(error)
      }
    }
  }

  /// A directory of batches is no batch; what is to be done with one is said.
  private static func explained(
    _ error: any Error, _ batch: String, _ options: BatchEncoder.Options
  ) -> any Error {
    guard let bad = error as? BadBatch, batch != "-",
      BatchDirectory.holdsBatches(batch, options.limits, options.decoders)
    else { return error }
    return BadBatch(
      bad.operation, bad.file, bad.cause, advice: "it holds batches: encode each of them with --batches \(batch)")
  }

  private static func line(_ receipt: Receipt, output: String) -> String {
    let what = receipt.duplicate ? "published before" : "published"
    return "\(receipt.batch): \(what): session \(receipt.session), \(count(receipt.segments, "segment")), "
      + "\(count(receipt.frames, "frame")), \(receipt.endMs - receipt.startMs) ms, \(receipt.bytes) bytes, "
      + "in \(output)/\(receipt.session)"
  }
}

/// The stages of all encoders.
private final class Stages: Sendable {
  private let all = Mutex<[BatchStage]>([])

  func add(_ stage: BatchStage) { all.withLock { $0.append(stage) } }

  var fractions: Double { all.withLock { $0.reduce(0) { $0 + $1.fraction } } }
}
