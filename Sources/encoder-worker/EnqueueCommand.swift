import ArgumentParser
import SegmentEncoder

struct EnqueueCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "enqueue",
    abstract: "Put frames into a spool as one batch, the safe way.",
    discussion: """
      The frames are copied to SPOOL/tmp, made durable, and renamed into SPOOL/incoming in one step: no worker ever sees half a batch. Prints the batch's name. FRAMES are images named <unix ms>.jpg or .png, or one directory of them, with its batch.json when it has one.
      """)

  @Option(help: ArgumentHelp("The spool; what is missing of it is made.", valueName: "dir"), completion: .directory)
  var spool: String

  @Option(help: ArgumentHelp("The session the frames belong to. (default: a new one)", valueName: "id"))
  var session: String?

  @Argument(help: ArgumentHelp("Image files, or one directory.", valueName: "frames"), completion: .file())
  var frames: [String]

  @OptionGroup
  var settings: SettingsOption

  func validate() throws {
    if let session, SessionID(session) == nil {
      throw ValidationError("--session: \(SessionID.rule)")
    }
  }

  func run() throws {
    try reportingFailures {
      answer(try Enqueuing(spool: Spool(creating: spool)).enqueue(frames, session: session))
    }
  }
}
