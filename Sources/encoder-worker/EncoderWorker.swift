import ArgumentParser
import CLinux
import Encoding
import SegmentEncoder

@main
struct EncoderWorker: ParsableCommand {
  static let version = "0.1.0"

  static let configuration = CommandConfiguration(
    commandName: "encoder-worker",
    abstract: "Encode batches of screenshots into 5-second H.264 segments with exact timing.",
    discussion: """
      Most used:
        encoder-worker film DIR --to FILE           make one film of a folder of pictures
        encoder-worker encode DIR -o OUTPUT         encode a directory of frames
        encoder-worker serve OUTPUT                 show the sessions in a browser
        encoder-worker stitch SESSION --to FILE     make one film of a session
        encoder-worker pictures S --at T --to FILE  write the picture at an instant
        encoder-worker verify OUTPUT                check all sessions
        encoder-worker encode BATCH --dry-run       show a batch, encode nothing
        encoder-worker enqueue --spool DIR *.jpg    put frames into a spool
        encoder-worker collect DIR --spool SPOOL    make batches of new screenshots
        encoder-worker --spool DIR                  encode the batches of a spool
        encoder-worker --spool DIR --drain          the same, then exit
        encoder-worker status --spool DIR           show queue and workers
        encoder-worker quarantine --spool DIR       show failed batches

      A batch is a directory or a tar, tar.gz or tar.zst of frames named <unix ms>.jpg, .png or .webp, or of frames and a batch.json, or a batch of Sentry, OpenReplay or Rejourney. Each segment comes with a manifest.

      Settings can also stand in a file (--config FILE, or ENCODER_WORKER_CONFIG), as max-hold = 3000, and in the environment, as ENCODER_WORKER_MAX_HOLD=3000.

      Exit status: 0 all done, 64 wrong usage, 65 a batch was refused (all else is done), 74 or 75 the environment failed (disk full, I/O error; nothing is lost, run it again).
      """,
    version: "encoder-worker \(version)",
    subcommands: [
      RunCommand.self, FilmCommand.self, EncodeCommand.self, EnqueueCommand.self, CollectCommand.self,
      StitchCommand.self, PicturesCommand.self, TextCommand.self, VerifyCommand.self, ReencodeCommand.self,
      ImportCommand.self, StatusCommand.self, QuarantineCommand.self, PruneCommand.self, EndCommand.self,
      DeleteCommand.self, ServeCommand.self, ReconcileCommand.self, ConfigCommand.self,
    ],
    defaultSubcommand: RunCommand.self)

  static func main() {
    FFmpegLog.silence()
    clinux_keep_memory(32 << 20, 64 << 20)
    clinux_raise_descriptor_limit()
    let words = Array(CommandLine.arguments.dropFirst())
    if let answer = FormerCommands.answer(to: words) {
      say(answer)
      exit(withError: ExitCode.validationFailure)
    }
    let variables = SettingsEnvironment.variables()
    if words.isEmpty && variables.isEmpty {
      say(lines: helpMessage())
      exit(withError: ExitCode.validationFailure)
    }
    do {
      if Invocation.needsSettings(words, variables) {
        var command = try Invocation(words, variables).parsed()
        try command.run()
      } else if let named = named(words) {
        var command = try parsed(named)
        try command.run()
      } else {
        main(words)
      }
    } catch {
      exit(withError: error)
    }
  }

  private static func parsed(_ words: [String]) throws -> any ParsableCommand {
    do {
      return try NamedCommand.parseAsRoot(words)
    } catch {
      guard let text = UnknownOptions.text(blaming: error, words) else { NamedCommand.exit(withError: error) }
      say(lines: text)
      NamedCommand.exit(withError: NamedCommand.exitCode(for: error))
    }
  }

  /// Returns the words with the name of their command; nil if the parser has to find out what they ask for.
  private static func named(_ words: [String]) -> [String]? {
    guard let first = words.first else { return nil }
    if words == ["--version"] { return words }
    if Invocation.isQuestion(words) { return nil }
    if commandNames.contains(first) { return words }
    return first.hasPrefix("-") ? ["run"] + words : nil
  }

  /// The commands, in the order of the help.
  static var commandNames: [String] { configuration.subcommands.compactMap { $0.configuration.commandName } }
}

/// The program, for a call that names its command. The parser reads the options of a default command before those of any other,
/// which takes a fifth of the instructions of a start.
private struct NamedCommand: ParsableCommand {
  static let configuration = {
    var configuration = EncoderWorker.configuration
    configuration.defaultSubcommand = nil
    return configuration
  }()
}
