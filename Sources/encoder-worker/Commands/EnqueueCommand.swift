import ArgumentParser
import FileSystem
import FrameBatches
import SegmentEncoder
import WorkQueues

struct EnqueueCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "enqueue",
    abstract: "Put frames into a spool, or into a queue and a store, as one batch.",
    discussion: """
      Copies the frames to SPOOL/tmp, syncs them, and renames them into SPOOL/incoming: workers never see half a batch. Prints the batch's name. FRAMES are images named <unix ms>.jpg or .png, or one directory of them with an optional batch.json. With --queue and --store, the frames become a tar in the store's incoming/, and its name is queued.
      """)

  @Option(
    help: ArgumentHelp("The spool directory; created if it is missing.", valueName: "dir"), completion: .directory)
  var spool: String?

  @OptionGroup
  var remote: RemoteOptions

  @Option(help: ArgumentHelp("Session of the frames. (default: a new one)", valueName: "id"))
  var session: String?

  @Argument(help: ArgumentHelp("Images, or one directory of images.", valueName: "frames"), completion: .file())
  var frames: [String]

  @OptionGroup
  var settings: SettingsOption

  func validate() throws {
    guard (spool == nil) == (remote.queue != nil) else {
      throw ValidationError(
        spool == nil
          ? "--spool DIR is missing, or --queue and --store" : "--spool, or --queue and --store: one or the other")
    }
    if let session, SessionID(session) == nil {
      throw ValidationError("--session: \(SessionID.rule)")
    }
  }

  func run() throws {
    try reportingFailures {
      if let spool {
        answer(try Enqueuer(spool: Spool(creating: spool)).enqueue(frames, session: session))
        return say("the batch is in \(spool)/incoming")
      }
      guard let remote = try remote.connect(as: WorkerID(), lease: Lease.defaultValue) else { return }
      defer { remote.names.leave() }
      let batches = ObjectBatchRepository(remote.objects, name: remote.name)
      answer(try batches.enqueue(frames, session: session, in: remote.names))
    }
  }
}
