import Foundation
import TestSupport
import Testing

/// What the README names is there, and what the program has the README names.
@Suite struct ReadmeTests {
  private let readme: String
  private let program: Command

  init() throws {
    readme = try String(contentsOf: Fixture.root.appendingPathComponent("README.md"), encoding: .utf8)
    program = try JSONDecoder().decode(Dump.self, from: Data(EncoderWorker.run("--experimental-dump-help").output))
      .command
  }

  /// The program as it describes itself.
  private struct Dump: Decodable { let command: Command }

  private struct Command: Decodable {
    struct Argument: Decodable {
      struct Name: Decodable {
        let kind: String
        let name: String
      }
      let kind: String
      let names: [Name]?
      let shouldDisplay: Bool
    }
    let commandName: String
    let shouldDisplay: Bool
    let arguments: [Argument]?
    let subcommands: [Command]?

    var commands: [Command] { (subcommands ?? []).filter { $0.shouldDisplay && $0.commandName != "help" } }

    /// As on the command line: `--output`, `-o`.
    func options(_ kinds: Set<String> = ["long", "short"]) -> Set<String> {
      let names = (arguments ?? []).filter(\.shouldDisplay).flatMap { $0.names ?? [] }
      return Set(names.filter { kinds.contains($0.kind) }.map { ($0.kind == "short" ? "-" : "--") + $0.name })
    }

    /// With those of all commands below it.
    func allOptions(_ kinds: Set<String> = ["long", "short"]) -> Set<String> {
      commands.reduce(options(kinds)) { $0.union($1.allOptions(kinds)) }
    }
  }

  /// All that a pattern's first group finds, in the README or a part of it.
  private func found(_ pattern: String, in text: String? = nil) throws -> Set<String> {
    let text = text ?? readme
    let regex = try NSRegularExpression(pattern: pattern, options: .anchorsMatchLines)
    let matches = regex.matches(in: text, range: NSRange(text.startIndex..., in: text))
    return Set(matches.compactMap { Range($0.range(at: 1), in: text).map { String(text[$0]) } })
  }

  /// The rows of the table whose head begins with this word.
  private func table(_ head: String) -> [[String]] {
    let lines = readme.split(separator: "\n", omittingEmptySubsequences: false)
    let rows = lines.drop { !$0.hasPrefix("| \(head) |") }.prefix { $0.hasPrefix("|") }.dropFirst(2)
    // A bar inside of code is escaped.
    return rows.map { row in
      row.replacingOccurrences(of: "\\|", with: "/").split(separator: "|").map {
        $0.trimmingCharacters(in: .whitespaces)
      }
    }
  }

  @Test func everyOptionThatIsNamedIsThere() throws {
    // Lines of shell that call other programs name theirs.
    let others: Set = [
      "--init", "--hostname", "--network", "--read-only", "--cap-drop", "--security-opt", "--memory", "--pids-limit",
      "--stop-timeout", "--userns", "--env", "--env-file", "--now", "--purge",
    ]
    let named = try found("(?<![-\\w])(--[a-z][a-z-]*[a-z])").subtracting(others)
    #expect(named.count > 30)
    #expect(named.subtracting(program.allOptions(["long"])).sorted() == [])
  }

  @Test func everyOptionIsInTheTable() throws {
    let rows = table("option")
    let named = try rows.reduce(into: Set<String>()) { $0.formUnion(try found("(--?[a-z][a-z-]*)", in: $1[0])) }
    #expect(program.allOptions().subtracting(named).sorted() == [])
    #expect(named.subtracting(program.allOptions()).sorted() == [])
  }

  @Test func everyCommandTakesAFileOfSettings() {
    for command in program.commands.flatMap({ $0.commands.isEmpty ? [$0] : $0.commands }) {
      #expect(command.options().contains("--config"), "\(command.commandName)")
    }
  }

  @Test func theTableSaysOfEachOptionWhichCommandsHaveIt() throws {
    for row in table("option") where row[1] != "all" {
      let option = try #require(try found("(--[a-z][a-z-]*)", in: row[0]).first)
      let said = Set(row[1].split(separator: ",").flatMap { words($0, having: option) })
      let commands = program.commands.flatMap { command in
        [(command.commandName, command)]
          + command.commands.map { ("\(command.commandName) \($0.commandName)", $0) }
      }
      let having = Set(commands.filter { $0.1.options().contains(option) }.map(\.0))
      #expect(said.symmetricDifference(having).sorted() == [], "\(option)")
    }
  }

  /// A command, with all below it that have an option: `quarantine` stands for `quarantine list` and the others.
  private func words(_ name: Substring, having option: String) -> [String] {
    let name = name.trimmingCharacters(in: .whitespaces)
    guard let command = program.commands.first(where: { $0.commandName == name }), !command.commands.isEmpty else {
      return [name]
    }
    return command.commands.filter { $0.options().contains(option) }.map { "\(name) \($0.commandName)" }
  }

  @Test func everyCommandIsInTheTableAndTheOtherWayRound() throws {
    let cells = table("command").map { $0[0] }
    let named = try cells.reduce(into: Set<String>()) {
      $0.formUnion(try found("^`encoder-worker \\[?([a-z]+)", in: $1))
    }
    #expect(named.symmetricDifference(program.commands.map(\.commandName)).sorted() == [])
    for command in program.commands where !command.commands.isEmpty {
      let cell = try #require(cells.first { $0.contains("encoder-worker \(command.commandName)") })
      for below in command.commands { #expect(cell.contains(below.commandName)) }
    }
  }

  @Test func everyCommandThatIsCalledIsThere() throws {
    let called = try found("(?:^|[`$] ?)(?:sudo -u \\S+ )?encoder-worker ([a-z]+)\\b")
    #expect(called.count > 8)
    #expect(called.subtracting(program.commands.map(\.commandName)).sorted() == [])
  }

  @Test func everyFileOfTheRepositoryThatIsNamedIsThere() throws {
    let links = try found("\\]\\(([^)#]+)\\)").filter { !$0.contains("://") }
    let paths = try found("\\b((?:Sources|Tests|Fuzzing|Benchmarks|fixtures|packaging|scripts|docs)/[\\w./-]*[\\w])")
    #expect(links.count > 3 && paths.count > 5)
    for path in links.union(paths) {
      #expect(FileManager.default.fileExists(atPath: Fixture.root.appendingPathComponent(path).path), "\(path)")
    }
  }

  @Test func everyTargetOfMakeThatIsNamedIsThere() throws {
    let makefile = try String(contentsOf: Fixture.root.appendingPathComponent("Makefile"), encoding: .utf8)
    let targets = try found("^([a-z][a-z-]*):", in: makefile)
    let contributing = try String(
      contentsOf: Fixture.root.appendingPathComponent("CONTRIBUTING.md"), encoding: .utf8)
    let named = try found("(?:^|`|&& )make ([a-z-]+)", in: readme + contributing)
    #expect(named.count > 8)
    #expect(named.subtracting(targets).sorted() == [])
    #expect(targets.subtracting(named).subtracting(["build", "format", "clean"]).sorted() == [])
  }

  @Test func everyVariableThatIsNamedIsASetting() throws {
    let options = Set(program.allOptions(["long"]).map { $0.dropFirst(2).uppercased().replacing("-", with: "_") })
    let named = try found("\\bENCODER_WORKER_([A-Z][A-Z_]*[A-Z])\\b")
    #expect(!named.isEmpty && named.subtracting(options).sorted() == [])
    let lines = try found("^([a-z-]+) = ").subtracting(["name"])
    #expect(
      !lines.isEmpty && lines.subtracting(options.map { $0.lowercased().replacing("_", with: "-") }).sorted() == [])
  }

  @Test func everyOptionThatIsNoSettingIsNamedAsSuch() throws {
    let line = try #require(readme.split(separator: "\n- ").first { $0.hasPrefix("Given with each call only: ") })
    let said = try found("(--[a-z-]+)", in: line.components(separatedBy: "\n\n")[0])
    let settings = try program.commands.reduce(into: Set<String>()) { all, command in
      let paths = [[command.commandName]] + command.commands.map { [command.commandName, $0.commandName] }
      for path in paths {
        let table = try Tool.run(EncoderWorker.path, ["config"] + path).text
        all.formUnion(table.split(separator: "\n").dropFirst().map { "--" + $0.prefix { $0 != " " } })
      }
    }
    #expect(said.symmetricDifference(program.allOptions(["long"]).subtracting(settings)).sorted() == [])
  }

  @Test func everyMetricIsInTheTableAndTheOtherWayRound() throws {
    let rows = table("metric")
    func named(_ command: String) throws -> Set<String> {
      let own = rows.filter {
        $0[1].split(separator: ",").contains { $0.trimmingCharacters(in: .whitespaces) == command }
      }
      return try own.reduce(into: []) { $0.formUnion(try found("`([a-z_]+)`", in: $1[0])) }
    }
    let spool = try TestSpool()
    try spool.addSmall("session", startMs: 1_767_859_512_340)
    try spool.drain()
    for arguments in [["run", "--spool", spool.path], ["serve", spool.output]] {
      let server = try RunningServer(arguments)
      _ = try server.get("/")
      let served = try found("^# TYPE ([a-z_]+)", in: server.get("/metrics").text)
      #expect(try named(arguments[0]).symmetricDifference(served).sorted() == [])
    }
    #expect(try found("\\b(encoder_worker_[a-z_]+)").isSubset(of: named("run").union(named("serve"))))
  }

  @Test func everyPathThatServeIsSaidToAnswerIsAnswered() throws {
    let spool = try TestSpool()
    try spool.add("gap")
    try spool.drain()
    let server = try RunningServer(["serve", spool.output])
    let paths = try table("path").reduce(into: Set<String>()) { $0.formUnion(try found("`(/[^`]*)`", in: $1[0])) }
    #expect(paths.count == 5)
    for path in paths { #expect(try server.get(path.replacing("ID", with: "gap")).status == 200, "\(path)") }
    let row = try #require(table("path").first { $0[0].contains("ID") })
    let files = try found("`([a-z0-9]+\\.[a-z0-9]+)`", in: row[1])
    #expect(files.count == 7)
    for file in files { #expect(try server.get("/sessions/gap/" + file).status == 200, "\(file)") }
  }

  @Test func everySettingOfTheExampleFileIsTaken() throws {
    let path = Fixture.root.appendingPathComponent("packaging/encoder-worker.conf")
    let text = try String(contentsOf: path, encoding: .utf8)
    let scratch = try ScratchDirectory()
    // Also those that are there to be switched on.
    let all = text.split(separator: "\n").map { line in
      line.hasPrefix("#") && line.contains(" = ") && !line.hasPrefix("# ") ? line.dropFirst() : line
    }
    let file = try scratch.file("all.conf", Array(all.joined(separator: "\n").utf8))
    let result = try EncoderWorker.run("config", "--config", file)
    #expect(result.status == 0 && result.text.components(separatedBy: file).count > 10, "\(result.errors)")
  }
}
