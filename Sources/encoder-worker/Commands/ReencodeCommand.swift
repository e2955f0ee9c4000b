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
    abstract: "Encode a session again, smaller, with the same times; or import an MP4.",
    discussion: """
      Times, holds, gaps and the timing track stay exactly as they are. SOURCE is a session, or an MP4 with H.264 or HEVC: the times of its pictures become captures. A second run continues a stopped one, and the result is the same bytes.
      """)

  @Argument(
    help: ArgumentHelp("A published session, OUTPUT/SESSION, or an MP4.", valueName: "source"), completion: .file())
  var source: String

  @Option(
    name: .shortAndLong, help: ArgumentHelp("The directory for sessions.", valueName: "dir"), completion: .directory)
  var output: String

  @Option(name: .shortAndLong, help: "small, balanced or sharp: fewer bytes, or more legible text.")
  var quality: Quality

  @Option(help: ArgumentHelp("Maximum of the longer side in pixels, 16 to 8192.", valueName: "n"))
  var maxSide: Int?

  @Option(help: ArgumentHelp("Session of an imported MP4. (default: the file's name)", valueName: "id"))
  var session: String?

  @Option(
    help: ArgumentHelp(
      "Capture time of an MP4's first picture, in unix milliseconds. (default: from its timing track, the number at the end of its name, or its creation time)",
      valueName: "ms"))
  var start: Int64?

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("Number of segments in parallel. (default: the number of cores)", valueName: "n"))
  var jobs: Int?

  @Flag(help: "Print the result as JSON.")
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
      try SessionDirectory.requireOutside(output)
      var staging: Staging?
      defer { staging?.remove() }
      let work = try Reencoding(
        source, options,
        staging: {
          let place = try Staging(output: output, worker: WorkerID())
          staging = place
          return place
        }, isCancelled: { signals.wait(ms: 0) })
      let done = Atomic<Int>(0)
      var progress = Progress()
      let list = ParallelRunner(work.pieces)
      let end = Result {
        try list.workOff(
          threads: Jobs.threads(jobs), signals: signals,
          tick: { progress.show(done.load(ordering: .relaxed), of: work.owed, "segments") }
        ) {
          { piece in Self.encode(piece, of: work, list, made: { done.add(1, ordering: .relaxed) }) }
        }
      }
      progress.finish()
      // The finished segments are a session, too, whole or not.
      let result = try work.finish(encoded: done.load(ordering: .relaxed))
      if list.isCancelled {
        say(
          "encoder-worker: stopped; \(count(work.owed - done.load(ordering: .relaxed), "segment")) to go, run it again")
      }
      try end.get()
      answer(json ? result.json : Self.line(result) + ", in \(output)/\(result.session)")
    }
  }

  private static func encode(
    _ piece: Int, of work: Reencoding, _ list: ParallelRunner<Int>, made: () -> Void
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
