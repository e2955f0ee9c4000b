import Foundation
import TestSupport
import Testing

/// README.md and docs/ name all that the program has, and only that.
@Suite struct DocumentationTests {
  /// The text of each page, by its path.
  private let pages: [String: String]
  private let text: String
  private let program: Command

  init() throws {
    let docs = try names(in: Fixture.root.appendingPathComponent("docs").path).filter { $0.hasSuffix(".md") }
    pages = try (["README.md"] + docs.map { "docs/" + $0 }).reduce(into: [:]) {
      $0[$1] = try String(contentsOf: Fixture.root.appendingPathComponent($1), encoding: .utf8)
    }
    text = pages.sorted { $0.key < $1.key }.map(\.value).joined(separator: "\n")
    program = try JSONDecoder().decode(Dump.self, from: Data(EncoderWorker.run("--experimental-dump-help").output))
      .command
  }

  private func page(_ path: String) throws -> String { try #require(pages[path], "\(path)") }

  /// The program's description of itself, as JSON.
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

    /// Returns the options as written on the command line: `--output`, `-o`.
    func options(_ kinds: Set<String> = ["long", "short"]) -> Set<String> {
      let names = (arguments ?? []).filter(\.shouldDisplay).flatMap { $0.names ?? [] }
      return Set(names.filter { kinds.contains($0.kind) }.map { ($0.kind == "short" ? "-" : "--") + $0.name })
    }

    /// Returns the options of this command and of all its subcommands.
    func allOptions(_ kinds: Set<String> = ["long", "short"]) -> Set<String> {
      commands.reduce(options(kinds)) { $0.union($1.allOptions(kinds)) }
    }
  }

  /// Returns all matches of a pattern's first group, in all pages or in one text.
  private func found(_ pattern: String, in part: String? = nil) throws -> Set<String> {
    let text = part ?? text
    let regex = try NSRegularExpression(pattern: pattern, options: .anchorsMatchLines)
    let matches = regex.matches(in: text, range: NSRange(text.startIndex..., in: text))
    return Set(matches.compactMap { Range($0.range(at: 1), in: text).map { String(text[$0]) } })
  }

  /// Returns the rows of the page's table whose header starts with this word.
  private func table(_ head: String, of path: String) throws -> [[String]] {
    let lines = try page(path).split(separator: "\n", omittingEmptySubsequences: false)
    let rows = lines.drop { !$0.hasPrefix("| \(head) |") }.prefix { $0.hasPrefix("|") }.dropFirst(2)
    // In code, a table escapes the vertical bar.
    return rows.map { row in
      row.replacingOccurrences(of: "\\|", with: "/").split(separator: "|").map {
        $0.trimmingCharacters(in: .whitespaces)
      }
    }
  }

  @Test func everyOptionInTheDocumentationExists() throws {
    // Shell lines that call other programs name those programs' options.
    let others: Set = [
      "--init", "--hostname", "--network", "--read-only", "--cap-drop", "--security-opt", "--memory", "--pids-limit",
      "--stop-timeout", "--userns", "--env", "--env-file", "--now", "--purge", "--write",
      "--from-env-file", "--no-sign-request", "--port", "--appendonly", "--digestfile", "--rm", "--entrypoint", "--key",
      "--type", "--predicate", "--traits", "--product", "--queue-name", "--attributes", "--bucket",
      "--notification-configuration", "--event", "--prefix", "--variant", "--swift-sdk", "--pkg-config-path",
      "--static-swift-stdlib",
    ]
    let named = try found("(?<![-\\w])(--[a-z][a-z-]*[a-z])").subtracting(others)
    #expect(named.count > 30)
    // The page of commands also has the former names.
    let former = try found("^\\| `[a-z]+ (--[a-z-]+)` \\|", in: page("docs/cli.md"))
    #expect(named.subtracting(program.allOptions(["long"])).subtracting(former).sorted() == [])
  }

  @Test func commandsPageMatchesTheProgram() throws {
    let generated = try Tool.output(Fixture.root.appendingPathComponent("scripts/cli-page").path, [EncoderWorker.path])
    #expect(
      try String(decoding: generated, as: UTF8.self) == page("docs/cli.md"),
      "run: scripts/cli-page .build/release/encoder-worker >docs/cli.md")
  }

  @Test func everyCommandHasTheConfigOption() {
    for command in program.commands.flatMap({ $0.commands.isEmpty ? [$0] : $0.commands }) {
      #expect(command.options().contains("--config"), "\(command.commandName)")
    }
  }

  @Test func commandTableMatchesTheCommands() throws {
    let named = try table("command", of: "docs/README.md").reduce(into: Set<String>()) {
      $0.formUnion(try found("^`([a-z]+)`", in: $1[0]))
    }
    #expect(named.symmetricDifference(program.commands.map(\.commandName)).sorted() == [])
  }

  @Test func everyCommandInTheDocumentationExists() throws {
    let called = try found("(?:^|[`$] ?)(?:sudo -u \\S+ )?encoder-worker ([a-z]+)\\b")
    #expect(called.count > 8)
    #expect(called.subtracting(program.commands.map(\.commandName) + ["help"]).sorted() == [])
  }

  @Test func everyLinkAndFileOfTheRepositoryExists() throws {
    for (path, page) in pages {
      let folder = Fixture.root.appendingPathComponent(path).deletingLastPathComponent()
      for link in try found("\\]\\(([^)]+)\\)", in: page) where !link.contains("://") {
        let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let target = String(parts[0])
        let file =
          parts[0].isEmpty ? Fixture.root.appendingPathComponent(path) : folder.appendingPathComponent(target)
        #expect(FileManager.default.fileExists(atPath: file.path), "\(path): \(link)")
        guard parts.count == 2, let other = try? String(contentsOf: file, encoding: .utf8) else { continue }
        let anchors = try found("^#+ (.+)$", in: other).map {
          $0.lowercased().filter { $0.isLetter || $0.isNumber || $0 == " " || $0 == "-" }.replacing(" ", with: "-")
        }
        #expect(anchors.contains(String(parts[1])), "\(path): \(link)")
      }
    }
    let folders = "Sources|Tests|Fuzzing|Benchmarks|fixtures|packaging|scripts|docs"
    let paths = try found("(?<![\\w/])((?:\(folders))/[\\w./-]*[\\w])")
    #expect(paths.count > 5)
    for path in paths {
      #expect(FileManager.default.fileExists(atPath: Fixture.root.appendingPathComponent(path).path), "\(path)")
    }
  }

  @Test func readmeIsShort() throws {
    let readme = try page("README.md")
    #expect(readme.split(separator: "\n", omittingEmptySubsequences: false).count <= 150)
    #expect(readme.split(whereSeparator: \.isWhitespace).count <= 1_000)
  }

  @Test func benchmarkPageAndQuotedFiguresMatchTheResults() throws {
    let script = Fixture.root.appendingPathComponent("Benchmarks/page.py").path
    let result = try Tool.run(Tool.python, [script, "--check"])
    #expect(result.status == 0, "\(result.errors)")
  }

  @Test func everyMakeTargetInTheDocumentationExists() throws {
    let makefile = try String(contentsOf: Fixture.root.appendingPathComponent("Makefile"), encoding: .utf8)
    let targets = try found("^([a-z][a-z0-9-]*):", in: makefile)
    let contributing = try String(
      contentsOf: Fixture.root.appendingPathComponent("CONTRIBUTING.md"), encoding: .utf8)
    let named = try found("(?:^|`|&& |\\$ )make ([a-z0-9-]+)", in: text + contributing)
    #expect(named.count > 8)
    #expect(named.subtracting(targets).sorted() == [])
    #expect(targets.subtracting(named).subtracting(["build", "format", "clean"]).sorted() == [])
  }

  @Test func everyVariableInTheDocumentationIsASetting() throws {
    let options = Set(program.allOptions(["long"]).map { $0.dropFirst(2).uppercased().replacing("-", with: "_") })
    let named = try found("\\bENCODER_WORKER_([A-Z][A-Z_]*[A-Z])\\b")
    #expect(!named.isEmpty && named.subtracting(options).sorted() == [])
    let lines = try found("^([a-z-]+) = ").subtracting(["name"])
    #expect(
      !lines.isEmpty && lines.subtracting(options.map { $0.lowercased().replacing("_", with: "-") }).sorted() == [])
  }

  @Test func everyOptionThatIsNotASettingIsDocumented() throws {
    let line = try #require(
      page("docs/configuration.md").split(separator: "\n- ").first { $0.hasPrefix("Given with each call only: ") })
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

  @Test func metricsTableMatchesTheMetrics() throws {
    let rows = try table("metric", of: "docs/metrics.md")
    func named(_ command: String) throws -> Set<String> {
      let own = rows.filter {
        $0[1].split(separator: ",").contains { $0.trimmingCharacters(in: .whitespaces) == command }
      }
      return try own.reduce(into: []) { $0.formUnion(try found("`([a-z_]+)`", in: $1[0])) }
    }
    let spool = try TestSpool()
    try spool.addSmall("session", startMs: 1_767_859_512_340)
    try spool.drain()
    for arguments in [["run", "--spool", spool.path, "--frozen", "10"], ["serve", spool.output]] {
      let server = try RunningServer(arguments)
      _ = try server.get("/")
      let served = try found("^# TYPE ([a-z_]+)", in: server.get("/metrics").text)
      #expect(try named(arguments[0]).symmetricDifference(served).sorted() == [])
    }
    let ingest = try RunningIngest(["--spool", spool.path])
    let served = try found("^# TYPE ([a-z_]+)", in: ingest.send("GET", "/metrics").text)
    #expect(try named("run `--ingest`").symmetricDifference(served).sorted() == [])
    // `PackedWorkerTests` and `UploadWorkerTests` read those with a store.
    let all = try ["run", "serve", "run `--ingest`", "run `--queue`", "run `--upload`"].map(named)
      .reduce(Set()) { $0.union($1) }
    #expect(try found("\\b(encoder_worker_[a-z_]+?)(?:_bucket)?\\b").isSubset(of: all))
  }

  @Test func logEventTableMatchesTheLogEvents() throws {
    let events = try table("event", of: "docs/operations.md").reduce(into: Set<String>()) {
      $0.formUnion(try found("`([a-z.]+)`", in: $1[0]))
    }
    let places = ["SegmentEncoder/Worker", "Notifying", "Ingesting", "encoder-worker/Worker"]
    let logged = try places.reduce(into: Set<String>()) { logged, place in
      let folder = Fixture.root.appendingPathComponent("Sources/\(place)")
      for file in try names(in: folder.path) where file.hasSuffix(".swift") {
        let text = try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
        logged.formUnion(
          try found(
            "\"((?:batch|compaction|disk|environment|export|frame|ingest|notification|objects|queue|recovery|retention|segments|session|text|tokens|traces|upload|worker)\\.[a-z]+)\"",
            in: text))
      }
    }
    #expect(!logged.isEmpty && events.symmetricDifference(logged).sorted() == [])
  }

  @Test func everyDocumentedPathOfServeResponds() throws {
    let spool = try TestSpool()
    try spool.add("gap")
    try spool.drain()
    let server = try RunningServer(["serve", spool.output])
    let paths = try table("path", of: "docs/player.md").reduce(into: Set<String>()) {
      $0.formUnion(try found("`(/[^`]*)`", in: $1[0]))
    }
    #expect(paths.count == 13)
    for path in paths { #expect(try server.get(path.replacing("ID", with: "gap")).status == 200, "\(path)") }
    let row = try #require(table("path", of: "docs/player.md").first { $0[0].contains("ID") })
    let files = try found("`([a-z0-9]+\\.[a-z0-9]+)`", in: row[1])
    #expect(files.count == 9)
    for file in files { #expect(try server.get("/sessions/gap/" + file).status == 200, "\(file)") }
  }

  @Test func everySettingOfTheExampleFileIsAccepted() throws {
    let path = Fixture.root.appendingPathComponent("packaging/encoder-worker.conf")
    let text = try String(contentsOf: path, encoding: .utf8)
    let scratch = try ScratchDirectory()
    // The test enables commented-out settings too.
    let all = text.split(separator: "\n").map { line in
      line.hasPrefix("#") && line.contains(" = ") && !line.hasPrefix("# ") ? line.dropFirst() : line
    }
    let file = try scratch.file("all.conf", Array(all.joined(separator: "\n").utf8))
    let result = try EncoderWorker.run("config", "--config", file)
    #expect(result.status == 0 && result.text.components(separatedBy: file).count > 10, "\(result.errors)")
  }
}
