import ArgumentParser
import FileSystem
import FrameBatches
import SegmentEncoder
import WorkQueues

struct EnqueueCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "enqueue",
    abstract: "Put frames as a batch into a spool, a store or a worker.",
    discussion: """
      Copies the frames to SPOOL/tmp, syncs them, and renames them into SPOOL/incoming: workers never see half a batch. Prints the batch's name. FRAMES are images named <unix ms>.jpg or .png, or one directory of them with an optional batch.json. More images than a batch takes become several batches. With --queue and --store, the frames become a tar in the store's incoming/, and its name is queued. With --to, the worker at this address gets the tar; it may be busy or away for five minutes. The same call may be repeated if --session or a batch.json names the session: the worker knows what it has. The command reads the batch as a worker does, and refuses what a worker would quarantine.
      """)

  static let page = HelpPage(
    example: "enqueue shots/ --spool spool", required: [["spool"], ["queue", "store"], ["to"]],
    common: ["session", "final", "fps", "start", "token-file"])

  @OptionGroup var target: QueueOptions
  @OptionGroup var sender: SenderOptions

  @Option(help: ArgumentHelp(SessionNameOption.idHelp + " (default: a new one)", valueName: "id"))
  var session: String?

  @OptionGroup var input: InputArguments
  @OptionGroup var labels: LabelOptions
  @OptionGroup var changed: LimitOptions

  @Argument(help: ArgumentHelp("Images, or one directory of images.", valueName: "frames"), completion: .file())
  var frames: [String]

  @OptionGroup var settings: SettingsOption

  func validate() throws {
    try requireSessionID(session)
    guard sender.to != nil else { return try target.requireOne() }
    if !target.isMissing { throw ValidationError("--to, --spool, or --queue and --store: one of them") }
  }

  func execute() throws {
    var shown = 0
    func show(_ name: String) {
      answer(name)
      shown += 1
    }
    if let spool = target.spool {
      let enqueuer = try Enqueuer(spool: Spool(creating: spool), limits: changed.limits)
      try enqueuer.enqueue(frames, options(), shown: show)
      return say(shown == 1 ? "the batch is in \(spool)/incoming" : "\(shown) batches are in \(spool)/incoming")
    }
    if let client = try sender.client(), let address = sender.to?.name {
      try PatientReceiver(client: client).enqueue(frames, options(), limits: changed.limits, shown: show)
      return say(shown == 1 ? "\(address) has the batch" : "\(address) has \(shown) batches")
    }
    guard let remote = try target.remote.connect(as: WorkerID(), lease: Lease.defaultValue) else { return }
    defer { remote.names.leave() }
    try StoreReceiver(remote.batches, remote.names).enqueue(frames, options(), limits: changed.limits, shown: show)
    let place = target.remote.store.map { " in \($0)" } ?? ""
    say(shown == 1 ? "the batch is queued\(place)" : "\(shown) batches are queued\(place)")
  }

  /// The facts of the batch. The name of a directory may have the session, unless a `batch.json` in it states the facts.
  private func options() throws -> InputOptions {
    var options = try input.options(session: session)
    options.labels = try labels.file(forInputs: 1)
    let isNamed = options.session != nil || DurableFile.exists(frames[0] + "/batch.json")
    if !isNamed, frames.count == 1, DurableFile.isReachableDirectory(frames[0]) {
      let found = try options.session(ofFolder: frames[0])
      options.session = found.id?.description
      if let warning = found.warning { say("\(warning), so the session is a new one, as without the option") }
    }
    options.sessionFrom = nil
    return options
  }
}
