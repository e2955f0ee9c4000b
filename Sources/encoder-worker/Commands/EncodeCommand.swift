import ArgumentParser
import CLinux
import Encoding
import FileSystem
import FrameBatches
import SegmentEncoder
import Sessions
import Synchronization
import WorkQueues

struct EncodeCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "encode",
    abstract: "Encode batches once, without a spool.",
    usage: """
      encoder-worker encode [<batch> ...] --output <dir> [<options>]
      encoder-worker encode [<batch> ...] --store <url> [<options>]
      encoder-worker encode [<batch> ...] --dry-run [<options>]
      encoder-worker encode --labels <file> --session <id> --output <dir>
      """,
    discussion: """
      For pipelines and batch engines. The command does not change or move the batches, and a second run changes nothing. It prints a line for each batch, or with --json an object. Finished MP4 segments with Sentry's video events are a batch, too: their pictures are copied. SIGTERM or SIGINT: it abandons the batches in work and exits with 75; run it again for the rest.

      With --store, sessions go to output/ in an object store, without a queue. Calls on several hosts may add to one session.

      --labels without a batch adds labels to a session that is published, by its --session. A second run adds none.

      --dry-run prints the format, the session, each frame with time, hold and size, the gaps, and refused files with the reason. It encodes nothing. Exit status 65 if a batch would be quarantined.
      """)

  static let page = HelpPage(
    example: "encode shots/ --output sessions", required: [["output"], ["store"], ["dry-run"]],
    common: ["session", "final", "append", "quality", "jobs", "files-from", "batches", "json"])

  @OptionGroup var selection: BatchSelection

  @Option(
    name: .shortAndLong, help: .setting(Self.outputHelp, valueName: "dir", isNeeded: true), completion: .directory)
  var output: String?

  private static let outputHelp = "The directory for sessions."

  @OptionGroup var place: SessionStoreOptions
  @OptionGroup var storeLayout: LayoutOption

  @Flag(help: "Show what would be done, and do nothing.")
  var dryRun = false

  @Flag(
    help: """
      Add to a session that is more than an hour away. A list, --batches and --shard need no such leave.
      """)
  var append = false

  @OptionGroup var loss: LossOption

  @Option(
    help: ArgumentHelp(SessionNameOption.idHelp + " (default: the batch's name up to @)", valueName: "id"))
  var session: String?

  @OptionGroup var input: InputArguments
  @OptionGroup var labels: LabelOptions
  @OptionGroup var events: EventOptions
  @OptionGroup var results: ResultOptions
  @OptionGroup var settings: SettingsOption
  @OptionGroup var encoding: EncodingOptions
  @OptionGroup var segments: SegmentOptions

  func validate() throws {
    try requireSessionID(session)
    if let output { try requireName("--output", output, such: "sessions") }
    if CallOptions.has("--store") { try CallOptions.refuse("--output", "-o", with: "--store") }
    try storeLayout.validate(withStore: directory == nil)
    if selection.isEmpty {
      try CallOptions.refuse("--dry-run", with: "--labels without a batch")
      guard session != nil else {
        throw ValidationError("--labels without a batch adds to a published session: name it with --session")
      }
    }
    if output == nil && place.store == nil && !dryRun {
      throw MissingOption.error("--output <dir>", "\(Self.outputHelp) Or --store <url>.")
    }
  }

  func execute() throws {
    if selection.isEmpty { return try addLabels() }
    if !dryRun { return try encode() }
    let batches = try selection.batches(output: nil)
    if batches.isEmpty { say("no batch to show") }
    let options = try encoderOptions(inputs: batches.count)
    try DryRun(
      results: results, accepts: loss.accept, options: options, partLimits: encoding.partLimits(options)
    ).show(batches)
  }

  /// The directory for sessions; nil for those of a store. An option of the call counts more than one of a file or of the environment.
  private var directory: String? { CallOptions.has("--store") ? nil : output }

  private func encoderOptions(inputs: Int) throws -> BatchEncoder.Options {
    var options = try encoding.encoder(input.options(session: session), segment: segments.segment)
    options.input.labels = try labels.file(forInputs: inputs)
    options.limits.splitsFolders = true
    options.limits.followsLinks = selection.folder == nil
    return options
  }

  private func encode() throws {
    if let directory { try SessionDirectory.requireOutside(directory) }
    let batches = try selection.batches(output: directory)
    if batches.isEmpty { say("no batch to encode") }
    let options = try encoderOptions(inputs: batches.count)
    // Code is mapped again in a millisecond, which a single batch is not worth.
    if batches.count > 1 { clinux_release_code() }
    let signals = try TerminationSignals()
    // Numbered folders of one session go on where the one before ends. A list that grows has no such order.
    let row = selection.isBulk ? nil : InputRow(options.input, isWithoutClock: false, overlaps: .left)
    let run = BatchRun(batches, encoding.partLimits(options), row: row, accepts: loss.accept)
    let target = try target(isOverdue: { run.isCancelled })
    defer { target.store.staging.remove() }
    let keyFrames = KeyFrameCache()
    let published = PublishedSessions()
    let end = Result {
      try run.workOff(
        threads: segments.threads, signals: signals, unit: "batches",
        tick: { _ = target.store.flushPending(all: false) },
        makeEncoder: { [options] in BatchEncoder(options, publishingTo: target.store, keyFrames: keyFrames) },
        conclude: { [options] path, outcome in conclude(path, outcome, options, published) })
    }
    let outdatedViews = target.store.flushPending(all: true)
    for outdated in outdatedViews {
      say("session \(outdated.session): \(outdated.error); run it again when that is mended")
    }
    if let profile = options.profile { say(lines: table(profile.rows)) }
    if let hint = published.hint { say(hint) }
    if let place = published.place(in: target.place), !results.json { answer(place.oneLine) }
    try end.get()
    if let own = outdatedViews.first(where: \.isOurs) { throw ExitStatus.afterRetry(of: own.error) }
  }

  /// Adds labels to a published session.
  private func addLabels() throws {
    guard let id = session.flatMap(SessionID.init), let file = try labels.file(forInputs: 1) else { return }
    let target = try target(isOverdue: { false })
    defer { target.store.staging.remove() }
    do {
      let receipt = try target.store.add(LabelAddition(file, to: id), cancellation: .never)
      results.print(json: receipt.json, text: Self.text(receipt).oneLine)
      for warning in receipt.warnings { say(warning) }
      if !results.json { answer("the session is in \(target.place)/\(id)".oneLine) }
    } catch let missing as SessionUnpublished {
      throw Failure(
        .input, "add", file.name, "\(missing)", advice: "encode its pictures first, or name another session")
    }
  }

  /// Opens the store of segments.
  ///
  /// - Parameter isOverdue: whether requests have to end.
  /// - Returns: the store, and where its sessions are, for messages.
  private func target(isOverdue: @escaping @Sendable () -> Bool) throws -> (store: any WorkerStore, place: String) {
    let worker = WorkerID()
    func appendGuard(_ place: String) -> AppendGuard? {
      append || selection.isBulk ? nil : AppendGuard(place: place)
    }
    if let directory {
      let store = DirectoryStore(
        staging: try Staging(output: directory, worker: worker),
        index: SessionViews(.on([(.sentry, events.sentry)])), appendGuard: appendGuard("--output \(directory)"))
      return (store, directory)
    }
    let (objects, name) = try place.objects(isOverdue: isOverdue)
    try objects.requireConditions(tryingAt: "incoming/.\(worker)", name: name)
    let store = ObjectStore(
      objects, name: name, staging: try Staging.temporary(for: worker), .on([(.sentry, events.sentry)]),
      layout: storeLayout.layout, appendGuard: appendGuard("--store \(name)"))
    return (store, name + "output")
  }

  /// Reports what has become of a batch.
  private func conclude(
    _ path: String, _ outcome: BatchRun.Outcome, _ options: BatchEncoder.Options, _ published: PublishedSessions
  ) -> ExitCode? {
    do {
      let receipts = try outcome.get()
      for receipt in receipts {
        results.print(json: receipt.json, text: Self.text(receipt).oneLine)
        if receipt.refusal == nil { published.add(receipt) }
        for refused in receipt.refused { say("\(path): refused \(refused.source): \(refused.reason)") }
        for warning in receipt.warnings { say("\(path): \(warning)") }
        for refused in receipt.refusedSessions {
          say("\(path): session \(refused.session): \(refused.error.advice); or leave it out with --accept")
        }
      }
      // The caller gets no segment of this batch, or not all.
      let isRefused = receipts.allSatisfy { $0.refusal != nil } || receipts.contains { !$0.refusedSessions.isEmpty }
      return isRefused ? ExitStatus.badBatch : nil
    } catch let same as SamePictures {
      say("\(path): \(same)")
      return nil
    } catch {
      let disposition = Disposition(of: LossOption.named(in: explained(error, path, options)), batch: path)
      if results.json { answer(disposition.json(batch: path, error)) }
      switch disposition {
      case .quarantine(let reason):
        say("\(path): \(reason); \(reason.advice)")
        return ExitStatus.badBatch
      case .handBack: return ExitStatus.temporaryFailure
      case .retry, .unknown:
        say("encoder-worker: \(path): \(error); nothing is lost, fix it and run again", .error)
        return ExitStatus.afterRetry(of: error)
      }
    }
  }

  /// Returns the error with advice of its own if the path is a directory of batches, and could not be read as one.
  private func explained(_ error: any Error, _ path: String, _ options: BatchEncoder.Options) -> any Error {
    guard let bad = error as? BadBatch, bad.operation == "read", selection.named.contains(path),
      BatchDirectory.holdsBatches(path, options.limits, options.decoders)
    else { return error }
    return BadBatch(
      bad.operation, bad.file, bad.cause,
      advice: "it holds batches: encode each of them with --batches \(path.shellWord)")
  }

  private static func text(_ receipt: Receipt) -> String {
    if let refusal = receipt.refusal { return "\(receipt.batch): refused: \(refusal)" }
    if let labels = receipt.labels {
      return "\(receipt.batch): "
        + (labels == 0 ? "no label is new" : "added \(count(labels, "label"))") + " in session \(receipt.session)"
    }
    let verb = receipt.duplicate ? "published before" : "published"
    return "\(receipt.batch): \(verb): session \(receipt.session), \(count(receipt.segments, "segment")), "
      + "\(count(receipt.frames, "frame")), \(duration(ms: receipt.endMs - receipt.startMs)), "
      + size(receipt.bytes) + (receipt.health?.sentence.map { "; " + $0 } ?? "")
  }
}

/// The sessions that a call has published, or found published. For any thread.
private final class PublishedSessions: Sendable {
  private let sessions = Mutex<(ids: Set<SessionID>, parts: PartNames)>(([], PartNames()))

  func add(_ receipt: Receipt) {
    sessions.withLock { sessions in
      sessions.ids.insert(receipt.session)
      sessions.parts.add(receipt.batch, of: receipt.session)
    }
  }

  /// See ``PartNames/hint``.
  var hint: String? { sessions.withLock { $0.parts.hint } }

  /// Returns the last line of the command, which is the same for each run; nil without a session.
  func place(in output: String) -> String? {
    let ids = sessions.withLock { $0.ids }
    guard let id = ids.first else { return nil }
    return ids.count == 1 ? "the session is in \(output)/\(id)" : "\(ids.count) sessions are in \(output)"
  }
}
