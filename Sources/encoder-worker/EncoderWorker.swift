import ArgumentParser
import CLinux
import Encoding
import SegmentEncoder

@main
struct EncoderWorker: ParsableCommand {
  static let version = "0.1.0"

  static let configuration = CommandConfiguration(
    commandName: "encoder-worker",
    abstract: "Turns batches of screenshots into 5-second H.264 segments, each picture held exactly until the next.",
    discussion: """
      Most used:
        encoder-worker --spool DIR --drain          encode all there is, then exit
        encoder-worker --spool DIR                  go on until told to stop
        encoder-worker encode BATCH --output DIR    one batch, no spool
        encoder-worker inspect BATCH                what is it, what would become of it?
        encoder-worker enqueue --spool DIR *.jpg    frames into a spool
        encoder-worker stitch SESSION --to FILE     one film of a session
        encoder-worker sheet SESSION --to FILE      a contact sheet: what was on screen when
        encoder-worker verify SESSION               is all as it should be?
        encoder-worker serve OUTPUT                 look at sessions in a browser
        encoder-worker playlist ID --store s3://…   links to a session in an object store
        encoder-worker status --spool DIR           what waits, who works, what is stuck?
        encoder-worker quarantine --spool DIR       what could not be encoded, and why
        encoder-worker prune --spool DIR            tidy up after dead workers
        encoder-worker reconcile --queue … --store …       queue again what the store owes
        encoder-worker reencode SESSION -o DIR -q small    fewer bytes
        encoder-worker config                       which settings are in force, and where they come from

      A batch is a directory or a tar, tar.gz or tar.zst of frames named <unix ms>.jpg, .png or .webp, or of frames and a batch.json, or what Sentry, OpenReplay or Rejourney leave behind. Each segment comes with a manifest.

      Options can also stand in a file (--config FILE, or ENCODER_WORKER_CONFIG), as max-hold = 3000, and in the environment, as ENCODER_WORKER_MAX_HOLD=3000.

      Exit status: 0 all done, 64 wrong usage, 65 a batch was refused (all else is done), 74 or 75 the machine failed (disk full, I/O error; nothing is lost, run it again).
      """,
    version: "encoder-worker \(version)",
    subcommands: [
      RunCommand.self, EncodeCommand.self, EnqueueCommand.self, StitchCommand.self, SheetCommand.self,
      VerifyCommand.self,
      ReencodeCommand.self, InspectCommand.self, StatusCommand.self, QuarantineCommand.self, PruneCommand.self,
      ServeCommand.self, ReconcileCommand.self, PlaylistCommand.self, ConfigCommand.self,
    ],
    defaultSubcommand: RunCommand.self)

  static func main() {
    FFmpegLog.silence()
    clinux_keep_memory(32 << 20, 64 << 20)
    clinux_raise_descriptor_limit()
    let words = Array(CommandLine.arguments.dropFirst())
    let variables = SettingsEnvironment.variables()
    do {
      if Call.needsSettings(words, variables) {
        try start(Call(words, variables))
      } else {
        main(words)
      }
    } catch {
      exit(withError: error)
    }
  }

  private static func start(_ call: Call) throws {
    var command = call.parsed()
    try command.run()
  }

  /// The commands, in the order of the help.
  static var commandNames: [String] { configuration.subcommands.compactMap { $0.configuration.commandName } }
}
