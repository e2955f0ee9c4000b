import ArgumentParser
import Encoding
import FileSystem
import Glibc
import Logging
import SegmentEncoder
import Sessions

/// The language of the words on screen.
struct TextLanguageOption: ParsableArguments {
  @Option(
    help: .setting("Languages of the words on screen, as tesseract names them: eng, deu+eng.", valueName: "languages"))
  var textLanguage = "eng"

  /// Finds tesseract.
  func engine(_ sandbox: SandboxOptions) throws -> TextEngine {
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
    let engine = try TextEngine(
      language: textLanguage, searchPath: path, isConfined: sandbox.sandbox != .off, cpuSeconds: sandbox.maxDecode)
    if let weakness = engine.weakness {
      if sandbox.sandbox == .require {
        throw SandboxError(description: "\(weakness), and --sandbox require asks for all of the sandbox")
      }
      say(weakness)
    }
    return engine
  }
}

/// The search by text, as `run` has it.
struct TextOptions: ParsableArguments {
  @Flag(help: .setting("Read the words in published pictures with tesseract, so that serve finds sessions by words."))
  var text = false

  @OptionGroup var language: TextLanguageOption

  /// Returns tesseract if the option is given, and warns of what it does.
  func engine(_ sandbox: SandboxOptions) throws -> TextEngine? {
    guard text else { return nil }
    let engine = try language.engine(sandbox)
    say(Self.warning)
    return engine
  }

  /// Returns what reads the pictures that a worker publishes; nil without tesseract.
  func passes(
    _ engine: TextEngine?, _ store: any WorkerStore, _ options: BatchEncoder.Options, _ freeSpace: FreeSpace,
    _ shutdown: ShutdownState, _ logger: Logger
  ) -> TextPasses? {
    engine.map { TextPasses($0, of: store, decoders: options.decoders, freeSpace, shutdown: shutdown, logger: logger) }
  }

  private static let warning =
    "--text: words on screen become searchable, also what users type and secrets that are shown; mask those. "
    + "About one word in twenty is missed"
}
