import ArgumentParser
import FileSystem
import SegmentEncoder
import WorkQueues

struct EnqueueCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "enqueue",
    abstract: "Put frames into a spool, or into a queue and a store, as one batch.",
    discussion: """
      Copies the frames to SPOOL/tmp, syncs them, and renames them into SPOOL/incoming: workers never see half a batch. Prints the batch's name. FRAMES are images named <unix ms>.jpg or .png, or one directory of them with an optional batch.json. With --queue and --store, the frames become a tar in the store's incoming/, and its name is queued. The command reads the batch as a worker does, and refuses what a worker would quarantine.
      """)

  @OptionGroup var target: QueueOptions
  @OptionGroup var input: InputArguments
  @OptionGroup var changed: LimitOptions

  @Argument(help: ArgumentHelp("Images, or one directory of images.", valueName: "frames"), completion: .file())
  var frames: [String]

  @OptionGroup var settings: SettingsOption

  func validate() throws { try target.requireOne() }

  func execute() throws {
    if let spool = target.spool {
      answer(try Enqueuer(spool: Spool(creating: spool), limits: changed.limits).enqueue(frames, input.options()))
      return say("the batch is in \(spool)/incoming")
    }
    guard let remote = try target.remote.connect(as: WorkerID(), lease: Lease.defaultValue) else { return }
    defer { remote.names.leave() }
    answer(try remote.batches.enqueue(frames, input.options(), limits: changed.limits, in: remote.names))
  }
}
