import ArgumentParser
import FileSystem
import FrameBatches
import SegmentEncoder
import WorkQueues

struct EnqueueCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "enqueue",
    abstract: "Put frames into a spool, or into a queue and a store, as a batch.",
    discussion: """
      Copies the frames to SPOOL/tmp, syncs them, and renames them into SPOOL/incoming: workers never see half a batch. Prints the batch's name. FRAMES are images named <unix ms>.jpg or .png, or one directory of them with an optional batch.json. More images than a batch takes become several batches. With --queue and --store, the frames become a tar in the store's incoming/, and its name is queued. The command reads the batch as a worker does, and refuses what a worker would quarantine.
      """)

  @OptionGroup var target: QueueOptions
  @OptionGroup var input: InputArguments
  @OptionGroup var changed: LimitOptions

  @Argument(help: ArgumentHelp("Images, or one directory of images.", valueName: "frames"), completion: .file())
  var frames: [String]

  @OptionGroup var settings: SettingsOption

  func validate() throws { try target.requireOne() }

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
    guard let remote = try target.remote.connect(as: WorkerID(), lease: Lease.defaultValue) else { return }
    defer { remote.names.leave() }
    try remote.batches.enqueue(frames, options(), limits: changed.limits, in: remote.names, shown: show)
    if shown > 1 { say("\(shown) batches are queued") }
  }

  /// The facts of the batch. The name of a directory may have the session, unless a `batch.json` in it states the facts.
  private func options() throws -> InputOptions {
    var options = try input.options()
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
