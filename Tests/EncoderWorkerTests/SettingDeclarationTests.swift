import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import encoder_worker

private let program: any ParsableCommand.Type = encoder_worker.EncoderWorker.self

/// Only an option that is declared as a setting acts in a file and in the environment: all options of all commands.
@Suite struct SettingDeclarationTests {
  private static let capture: Set = ["capture", "interval", "name-time", "time-zone", "times", "session-from"]
  private static let log: Set = ["log-format", "log-level", "verbose"]
  private static let sandbox: Set = ["sandbox", "max-decode"]
  private static let remote: Set = ["queue", "store", "unsigned", "store-header", "allow-non-durable-queue"]
  private static let encoding =
    sandbox.union([
      "quality", "max-hold", "segment", "background", "bits", "max-jump", "no-labels", "limit", "jobs", "profile",
    ])

  /// The settings of each command, by hand. Whatever removes, reverses, or names what one call is about is not here.
  private static let settings: [String: Set<String>] = [
    "run": capture.union(log).union(remote).union(encoding).union([
      "spool", "output", "drain", "keep-batches", "hls", "thumbnails", "text", "text-language", "sentry", "layout",
      "end-after", "max-time", "min-free", "upload", "upload-every", "keep-local", "export", "profile-every", "frozen",
      "compact",
      "lease", "listen", "host", "ingest", "ingest-tokens", "ingest-open", "ingest-backlog", "ingest-state",
      "ingest-origin", "notify",
      "notify-secret-file", "notify-pending", "notify-timeout",
    ]),
    "film": capture.union(encoding).union(["gaps"]),
    "encode": capture.union(encoding).union(["output", "sentry", "layout", "store", "unsigned", "store-header"]),
    "enqueue": capture.union(remote).union(["spool", "limit", "token-file"]),
    "collect": capture.union(log).union([
      "spool", "token-file", "batch-every", "end-after-pause", "keep", "recursive", "session-every", "min-free",
    ]),
    "stitch": sandbox.union(["gaps", "store", "unsigned", "store-header", "expires", "plain"]),
    "pictures": sandbox.union(["columns", "width", "store", "unsigned", "store-header"]),
    "text": sandbox.union(["text-language", "store", "unsigned", "store-header"]),
    "verify": sandbox.union(["store", "unsigned", "store-header"]),
    "reencode": sandbox.union([
      "output", "quality", "max-side", "jobs", "overlay", "overlay-time-zone", "layout", "store", "unsigned",
      "store-header",
    ]),
    "status": ["spool", "output", "queue", "store", "unsigned", "store-header"],
    "quarantine list": ["spool", "store", "unsigned", "store-header"],
    "quarantine show": sandbox.union(["spool", "store", "unsigned", "store-header"]),
    "quarantine retry": ["spool", "store", "unsigned", "store-header", "notify", "notify-secret-file"],
    "quarantine purge": ["spool", "store", "unsigned", "store-header"],
    "prune": ["spool", "output", "lease", "store", "unsigned", "store-header"],
    "end": ["output", "spool", "store", "unsigned", "store-header"],
    "delete": sandbox.union(["output", "spool", "store", "unsigned", "store-header", "session-from"]),
    "serve": sandbox.union(["listen", "host", "min-free", "store", "unsigned", "store-header"]),
    "reconcile": remote,
    "config show": [], "config check": ["store", "unsigned", "store-header"],
  ]

  /// The commands without subcommands, by their words.
  private static func leaves(_ command: CommandSchema, _ words: [String] = []) -> [(words: [String], CommandSchema)] {
    let subcommands = command.subcommands.filter { $0.name != "help" }
    return subcommands.isEmpty
      ? [(words, command)] : subcommands.flatMap { leaves($0, words + [$0.name]) }
  }

  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private static func variable(_ option: String) -> String {
    SettingsEnvironment.prefix + option.uppercased().replacing("-", with: "_")
  }

  @Test func onlyDeclaredOptionsAreSettings() throws {
    let commands = try Self.leaves(.program(program))
    #expect(Set(commands.map { $0.words.joined(separator: " ") }) == Set(Self.settings.keys))
    for (words, command) in commands {
      let name = words.joined(separator: " ")
      #expect(Set(command.options.filter(\.isSetting).map(\.name)) == Self.settings[name], "\(name)")
    }
  }

  /// A name that is a setting of another command is accepted, because one file serves all commands, and changes nothing.
  @Test func optionThatIsNoSettingIsNeverTakenFromAVariableOrAFile() throws {
    let schema = try CommandSchema.program(program)
    let everywhere = Set(schema.allOptions.filter(\.isSetting).map(\.name))
    var elsewhere: [String] = []
    for (words, command) in Self.leaves(schema) {
      for option in command.options where !option.isSetting {
        let value = option.isFlag ? "true" : option.example
        let file = try scratch.file("settings.conf", Array("\(option.name) = \(value)\n".utf8))
        let variables = [(name: Self.variable(option.name), value: value)]
        let calls = [
          { try Invocation(of: program, words, variables) }, { try Invocation(of: program, words, [], file: file) },
        ]
        for (index, call) in calls.enumerated() {
          if everywhere.contains(option.name) {
            elsewhere.append(option.name)
            #expect(try call().options.allSatisfy(\.given.isEmpty), "\(words) \(option.name)")
          } else if option.name != "config" || index > 0 {
            let error = #expect(throws: ValidationError.self, "\(words) \(option.name)") { try call() }
            // The settings of `collect` had these names.
            let cause = ["every", "idle"].contains(option.name) ? "of collect is now" : "is no setting"
            #expect(error.map { "\($0)".contains("'\(option.name)' \(cause)") } == true, "\(words) \(option.name)")
          }
        }
      }
    }
    #expect(Set(elsewhere) == ["compact", "ingest-state", "max-side", "queue"])
  }

  @Test(arguments: [
    ("delete", "undelete", "true"), ("delete", "reason", "x"), ("prune", "tombstones", "true"),
    ("run", "retain", "7d"), ("run", "max-bytes", "1"), ("prune", "retain", "7d"), ("prune", "max-bytes", "1"),
    ("prune", "dry-run", "true"), ("prune", "sessions", "1s"), ("prune", "done", "1s"), ("prune", "quarantine", "1s"),
    ("quarantine purge", "all", "true"), ("quarantine purge", "dry-run", "true"),
    ("quarantine retry", "events", "true"), ("stitch", "to", "film.mp4"),
    ("stitch", "format", "hls"), ("encode", "final", "true"), ("enqueue", "session", "x"), ("encode", "shard", "0/2"),
    ("verify", "repair", "true"), ("enqueue", "start", "1767859512340"),
  ])
  func optionThatActsIsNoSetting(command: String, option: String, value: String) throws {
    let words = command.split(separator: " ").map(String.init)
    #expect(throws: ValidationError.self) { try Invocation(of: program, words, [(Self.variable(option), value)]) }
  }

  @Test func deletionIsNotReversedByASetting() throws {
    let output = scratch.path("output")
    let encode = ["encode", Fixture("gap").path, "--output", output]
    #expect(try Tool.run(EncoderWorker.path, encode).status == 0)
    let file = try scratch.file("undelete.conf", Array("undelete = true\n".utf8))
    let words = ["delete", "gap", "--output", output]
    for (words, environment) in [
      (words, ["ENCODER_WORKER_UNDELETE": "true"]), (words + ["--config", file], [:]),
    ] {
      let result = try Tool.run(EncoderWorker.path, words, environment: environment)
      #expect(result.status == 64 && result.errors.contains("'undelete' is no setting"), "\(result.errors)")
      #expect(FileManager.default.fileExists(atPath: output + "/gap/session.json"))
    }
    // The place of a deletion may be a setting.
    let result = try Tool.run(EncoderWorker.path, ["delete", "gap"], environment: ["ENCODER_WORKER_OUTPUT": output])
    #expect(result.status == 0 && !FileManager.default.fileExists(atPath: output + "/gap"), "\(result.errors)")
  }

  @Test func factsOfOptionsAreInNoDumpForOthers() throws {
    let text = try EncoderWorker.run("--experimental-dump-help").text
    #expect(text.contains(#""valueName" : "quality""#) && !text.contains(#/"discussion" : "\d+"/#))
    #expect(try CommandSchema.program(program).find(["encode"]).command.option("quality")?.isSetting == true)
  }

  /// The file of settings serves all commands: a name that another command still has is an error for the renamed one only.
  @Test func formerSettingNamesTheNewOneAndIsNeverIgnored() throws {
    for (option, now) in [("every", "batch-every"), ("idle", "end-after-pause")] {
      for command in ["collect", "run", "encode"] {
        let error = #expect(throws: ValidationError.self) {
          try Invocation(of: program, [command], [(Self.variable(option), "5")])
        }
        #expect(error.map { "\($0)".contains("'\(option)' of collect is now '\(now)'") } == true)
      }
    }
    let zone = [(name: Self.variable("time-zone"), value: "UTC")]
    let error = #expect(throws: ValidationError.self) { try Invocation(of: program, ["reencode"], zone) }
    #expect(error.map { "\($0)".contains("'time-zone' of reencode is now 'overlay-time-zone'") } == true)
    _ = try Invocation(of: program, ["collect"], zone)
    _ = try Invocation(of: program, ["reencode"], zone + [(Self.variable("overlay-time-zone"), "UTC")])
  }

  @Test func documentationListsTheSettingsOfEachCommand() throws {
    let page = try String(
      contentsOf: Fixture.root.appendingPathComponent("docs/configuration.md"), encoding: .utf8)
    var listed: [String: Set<String>] = [:]
    for row in page.split(separator: "\n") where row.hasPrefix("| `") && !row.hasPrefix("| `--") {
      let cells = row.split(separator: "|").map { cell in
        cell.split(separator: "`").enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) }
      }
      for command in cells[0] { listed[command, default: []].formUnion(cells[1]) }
    }
    for (words, _) in try Self.leaves(.program(program)) {
      // All commands of a group have a row of the group's name, or one of their own.
      let names = [words.joined(separator: " "), words[0]]
      let all = names.reduce(into: Set<String>()) { $0.formUnion(listed[$1] ?? []) }
      #expect(all == Self.settings[names[0]], "\(names[0])")
    }
  }
}
