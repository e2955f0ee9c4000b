import ArgumentParser
import FileSystem
import FrameBatches
import SegmentEncoder
import WorkQueues

struct EnqueueCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "enqueue",
    abstract: "Put frames into a spool, or a queue and a store, as one batch, the safe way.",
    discussion: """
      The frames are copied to SPOOL/tmp, made durable, and renamed into SPOOL/incoming in one step: no worker ever sees half a batch. Prints the batch's name. FRAMES are images named <unix ms>.jpg or .png, or one directory of them, with its batch.json when it has one. With --queue and --store they become a tar in the store's incoming/, written whole or not at all, and its name is queued.
      """)

  @Option(help: ArgumentHelp("The spool; what is missing of it is made.", valueName: "dir"), completion: .directory)
  var spool: String?

  @OptionGroup
  var remote: RemoteOptions

  @Option(help: ArgumentHelp("The session the frames belong to. (default: a new one)", valueName: "id"))
  var session: String?

  @Argument(help: ArgumentHelp("Image files, or one directory.", valueName: "frames"), completion: .file())
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
      if let spool { return answer(try Enqueuing(spool: Spool(creating: spool)).enqueue(frames, session: session)) }
      guard let remote = try remote.connect(as: WorkerID(), lease: Lease.usual) else { return }
      defer { remote.names.leave() }
      let batches = StoredBatches(remote.objects, name: remote.name)
      answer(try batches.enqueue(frames, session: session, in: remote.names))
    }
  }
}
