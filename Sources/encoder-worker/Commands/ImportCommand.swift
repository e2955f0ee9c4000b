import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import SegmentEncoder
import Sessions

struct ImportCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Publish finished MP4 segments as a session, without re-encoding.",
    discussion: """
      SEGMENTS_DIR has MP4s with H.264 and Sentry's video events about them, as Sentry hands them out or run --sentry writes them. An event tells when its video starts. The coded pictures are copied, and time that no video shows is a gap. The command prints what it refused and why; then the exit status is 65, and all else is done. A second run changes nothing.
      """)

  @Argument(
    help: ArgumentHelp("A directory of MP4s and their events.", valueName: "segments-dir"), completion: .directory)
  var segments: String

  @Option(
    name: .shortAndLong, help: .setting("The directory for sessions.", valueName: "dir"), completion: .directory)
  var output: String

  @Option(help: ArgumentHelp("The session. (default: the directory's name up to @)", valueName: "id"))
  var session: String?

  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws { try requireSessionID(session) }

  func execute() throws {
    try SessionDirectory.requireOutside(output)
    let result = try Self.run(
      segments, session: session.flatMap { SessionID($0) }, decoders: sandbox.videoDecoders(),
      decodeSeconds: sandbox.maxDecode, output: output)
    Self.report(result, on: segments)
    results.print(json: result.json, text: Self.text(result))
    if !result.refused.isEmpty { throw ExitStatus.badBatch }
  }

  private static func run(
    _ segments: String, session: SessionID?, decoders: DecoderForkServer?, decodeSeconds: Int, output: String
  ) throws -> ImportedSession {
    var limits = Limits.ofFilms
    limits.decodeSeconds = decodeSeconds
    let signals = try TerminationSignals()
    var work = try Importing(
      segments, session: session, limits: limits, decoders: decoders, cancellation: Cancellation { signals.wait(ms: 0) }
    )
    let staging = try Staging(output: output, worker: WorkerID())
    defer { staging.remove() }
    var progress = Progress()
    defer { progress.finish() }
    return try work.publish(to: staging) { progress.show($0, of: $1, "videos") }
  }

  private static func report(_ result: ImportedSession, on path: String) {
    for problem in result.skipped { say("\(path): skipped \(problem.file): \(problem.what)") }
    for problem in result.refused { say("\(path): refused \(problem.file): \(problem.what)") }
    for problem in result.warnings { say("\(path): \(problem.file): \(problem.what)") }
  }

  private static func text(_ result: ImportedSession) -> String {
    let before = result.duplicates > 0 ? ", \(result.duplicates) published before" : ""
    let refused = result.refused.isEmpty ? "" : ", \(result.refused.count) refused"
    return "\(result.session): \(count(result.videos, "video")) imported\(before)\(refused): "
      + "\(count(result.segments, "segment")), \(count(result.frames, "frame")), \(result.shownMs) ms, "
      + "\(result.bytes) bytes" + (result.path.map { ", in \($0)" } ?? "")
  }

  /// Calls `body` with a published session. A directory of finished segments is imported into a private directory first, which is
  /// removed at the end.
  ///
  /// - Throws: exit status 65 after `body` if segments were refused.
  static func withSession(
    _ path: String, _ sandbox: SandboxOptions, _ decoders: DecoderForkServer?, _ body: (String) throws -> Void
  ) throws {
    guard Importing.isRecognised(path) else { return try body(path) }
    // The next command removes what a killed one has left.
    let staging = try Staging.temporary(for: WorkerID())
    defer { staging.remove() }
    let scratch = Staging.Scratch(in: staging)
    defer { scratch.remove() }
    let name = String(lastComponent(of: DurableFile.resolved(path)).prefix { $0 != "@" })
    let result = try run(
      path, session: SessionID(name) ?? SessionID("segments"), decoders: decoders, decodeSeconds: sandbox.maxDecode,
      output: scratch.path)
    report(result, on: path)
    guard let session = result.path else {
      throw BadSession(path, "none of its videos can be imported", advice: "see the reasons above")
    }
    say("\(path): no session, but finished segments: took \(count(result.videos, "video")), as import does")
    try body(session)
    if !result.refused.isEmpty { throw ExitStatus.badBatch }
  }
}
