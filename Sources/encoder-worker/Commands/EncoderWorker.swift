import ArgumentParser
import CLinux
import Encoding
import SegmentEncoder

@main
struct EncoderWorker: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "encoder-worker",
    abstract: "Encode batches of screenshots into 5-second H.264 segments with exact timing.",
    discussion: """
      A batch is a directory or a tar, tar.gz or tar.zst of frames named <unix ms>.jpg, .png or .webp, or of frames and a batch.json, or a batch of Sentry, OpenReplay or Rejourney. Each segment comes with a manifest.

      Settings can also stand in a file (--config FILE, or ENCODER_WORKER_CONFIG), as max-hold = 3000, and in the environment, as ENCODER_WORKER_MAX_HOLD=3000.

      Exit status: 0 all done, 64 wrong usage, 65 a batch was refused (all else is done), 74 or 75 the environment failed (disk full, I/O error; nothing is lost, run it again).
      """,
    version: "encoder-worker \(ProgramVersion.text)",
    groupedSubcommands: [
      CommandGroup(
        name: "Make",
        subcommands: [FilmCommand.self, EncodeCommand.self, StitchCommand.self, ReencodeCommand.self]),
      CommandGroup(
        name: "Look",
        subcommands: [ServeCommand.self, PicturesCommand.self, TextCommand.self, VerifyCommand.self]),
      CommandGroup(
        name: "Operate",
        subcommands: [
          RunCommand.self, EnqueueCommand.self, CollectCommand.self, StatusCommand.self, QuarantineCommand.self,
          PruneCommand.self, EndCommand.self, DeleteCommand.self, ReconcileCommand.self, ConfigCommand.self,
        ]),
    ],
    defaultSubcommand: RunCommand.self)

  static func main() {
    FFmpegLog.silence()
    clinux_keep_memory(32 << 20, 64 << 20)
    clinux_raise_descriptor_limit()
    let words = Array(CommandLine.arguments.dropFirst())
    if let answer = FormerNames.answer(to: words) {
      say(answer)
      exit(withError: ExitCode.validationFailure)
    }
    let variables = SettingsEnvironment.variables()
    if words.isEmpty && variables.isEmpty {
      say(lines: HelpText.program(Self.self))
      exit(withError: ExitCode.validationFailure)
    }
    do {
      if let help = try HelpText.answer(to: words, of: Self.self) { return answer(help) }
      if Invocation.needsSettings(words, variables) {
        var command = try Invocation(of: Self.self, words, variables).parsed()
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
      guard let text = UnknownOptions.text(blaming: error, words, of: EncoderWorker.self) else {
        NamedCommand.exit(withError: error)
      }
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
  static var commandNames: [String] {
    let all = configuration.groupedSubcommands.flatMap(\.subcommands) + configuration.ungroupedSubcommands
    return all.compactMap { $0.configuration.commandName }
  }
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
