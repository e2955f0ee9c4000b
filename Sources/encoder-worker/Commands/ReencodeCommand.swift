import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import SegmentEncoder
import Sessions
import Synchronization

struct ReencodeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reencode",
    abstract: "Encode a finished session anew: other quality or size, the same instants.",
    discussion: """
      Instants, holds, gaps and the timing track stay as they are, to the tick. SOURCE is a published session, or any MP4 with H.264 or HEVC, whose pictures' times are taken for the captures. Stopped and started again, it goes on where it was, and the result is the same bytes.
      """)

  @Argument(
    help: ArgumentHelp("A published session, OUTPUT/SESSION, or an MP4.", valueName: "source"), completion: .file())
  var source: String

  @Option(name: .shortAndLong, help: ArgumentHelp("Where sessions go.", valueName: "dir"), completion: .directory)
  var output: String

  @Option(name: .shortAndLong, help: "small, balanced or sharp: bytes against legibility.")
  var quality: Quality

  @Option(help: ArgumentHelp("Make pictures smaller whose longer side has more pixels; 16 to 8192.", valueName: "n"))
  var maxSide: Int?

  @Option(help: ArgumentHelp("Of an MP4: the session. (default: the file's name)", valueName: "id"))
  var session: String?

  @Option(
    help: ArgumentHelp(
      "Of an MP4: its first picture's capture, in unix milliseconds. (default: from the film's timing track, the end of its name, or its creation time)",
      valueName: "ms"))
  var start: Int64?

  @Option(name: .shortAndLong, help: ArgumentHelp("Segments at once. (default: the number of cores)", valueName: "n"))
  var jobs: Int?

  @Flag(help: "The result as JSON.")
  var json = false

  @OptionGroup
  var sandbox: SandboxOptions

  @OptionGroup
  var settings: SettingsOption

  func validate() throws {
    if let session, SessionID(session) == nil { throw ValidationError("--session: \(SessionID.rule)") }
    guard (16...8_192).contains(maxSide ?? 16) else { throw ValidationError("--max-side is between 16 and 8192") }
    guard Jobs.range.contains(jobs ?? 1) else { throw ValidationError(Jobs.rule) }
  }

  func run() throws {
    try reportingFailures {
      var options = Reencoding.Options()
      options.quality = quality
      options.maxSide = maxSide
      options.session = session.flatMap { SessionID($0) }
      options.startMs = start
      options.decoders = try sandbox.videoDecoders()
      options.limits.decodeSeconds = sandbox.maxDecode
      let signals = try TerminationSignals()
      if Reencoding.isSession(source), session != nil || start != nil {
        say("encoder-worker: a published session has its own name and instants: --session and --start are for an MP4")
        throw ExitCode.validationFailure
      }
      let staging = try Staging(output: output, worker: WorkerID())
      defer { staging.remove() }
      let work = try Reencoding(source, options, staging: staging, isCancelled: { signals.wait(ms: 0) })
      let done = Atomic<Int>(0)
      var progress = Progress()
      let list = WorkList(work.pieces)
      let end = Result {
        try list.workOff(
          threads: Jobs.threads(jobs), signals: signals,
          tick: { progress.show(done.load(ordering: .relaxed), of: work.owed, "segments") }
        ) {
          { piece in Self.encode(piece, of: work, list, made: { done.add(1, ordering: .relaxed) }) }
        }
      }
      progress.finish()
      // What was made of it is a session, too, whole or not.
      let result = try work.finish(encoded: done.load(ordering: .relaxed))
      if list.isCancelled {
        say(
          "encoder-worker: stopped; \(count(work.owed - done.load(ordering: .relaxed), "segment")) to go, run it again")
      }
      try end.get()
      answer(json ? result.json : Self.line(result))
    }
  }

  private static func encode(
    _ piece: Int, of work: Reencoding, _ list: WorkList<Int>, made: () -> Void
  ) -> ExitCode? {
    do {
      try reportingFailures { try work.encode(piece: piece, isCancelled: { list.isCancelled }, made: made) }
      return nil
    } catch {
      return error as? ExitCode
    }
  }

  private static func line(_ result: ReencodedSession) -> String {
    "\(result.session): \(count(result.segments, "segment")), \(result.encoded) made now, \(result.durationMs) ms, "
      + "\(result.bytes) bytes"
  }
}
