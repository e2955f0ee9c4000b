import Foundation
import TestSupport
import Testing

/// A flag overrides the environment, which overrides the file; `config` shows the source of each setting.
@Suite struct SettingsTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private struct Row: Decodable, Equatable {
    var name: String
    var value: String?
    var source: String
    var variable: String?
    var file: String?
    var line: Int?
  }

  private func file(_ lines: String...) throws -> String {
    try scratch.file("settings.conf", Array(lines.joined(separator: "\n").utf8))
  }

  private func run(_ words: [String], _ environment: [String: String] = [:]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words, environment: environment)
  }

  /// Returns the settings that `config` prints.
  private func config(_ words: String..., environment: [String: String] = [:]) throws -> [Row] {
    let result = try run(["config"] + words + ["--json"], environment)
    try #require(result.status == 0, "\(result.errors)")
    return try result.text.split(separator: "\n").map { try JSONDecoder().decode(Row.self, from: Data($0.utf8)) }
  }

  @Test func flagOverridesEnvironmentAndEnvironmentOverridesFile() throws {
    let file = try file("max-hold = 1000", "max-jump=2000", "# a comment", "", "  max-time\t=  3000  ")
    let rows = try config(
      "run", "--max-hold", "11", "--config", file,
      environment: ["ENCODER_WORKER_MAX_HOLD": "12", "ENCODER_WORKER_MAX_JUMP": "13", "ENCODER_WORKER_JOBS": ""])
    func row(_ name: String) -> Row? { rows.first { $0.name == name } }
    #expect(row("max-hold") == Row(name: "max-hold", value: "11", source: "flag"))
    #expect(
      row("max-jump")
        == Row(name: "max-jump", value: "13", source: "environment", variable: "ENCODER_WORKER_MAX_JUMP"))
    #expect(row("max-time") == Row(name: "max-time", value: "3000", source: "file", file: file, line: 5))
    #expect(row("lease") == Row(name: "lease", value: "60", source: "default"))
    #expect(row("jobs") == Row(name: "jobs", source: "default"))
  }

  @Test func everySpellingOfAFlagIsReadAsAFlag() throws {
    let file = try file("quality = sharp", "jobs = 7", "verbose = false", "output = /nowhere")
    for words in [
      ["-vq", "small", "-j=4", "-o", "/here"], ["--quality=small", "-j", "4", "--verbose", "--output=/here"],
      ["-v", "-q=small", "-j=4", "--output", "/here"],
    ] {
      let result = try run(["config", "--json", "--config=\(file)"] + words)
      #expect(result.status == 0 && result.text.components(separatedBy: "\"source\":\"flag\"").count == 5, "\(words)")
    }
  }

  @Test func settingTakesEffect() throws {
    let session = try scratch.directory("output")
    let file = try file("output = \(session)", "max-hold = 2000", "spool = /not/for/encode")
    let batch = Fixture("gap").path
    let result = try run(
      ["encode", batch, "--json"], ["ENCODER_WORKER_CONFIG": file, "ENCODER_WORKER_QUALITY": "small"])
    #expect(result.status == 0, "\(result.errors)")
    let manifests = try FileManager.default.subpathsOfDirectory(atPath: session).filter { $0.contains("/segment-") }
    let manifest = try #require(manifests.first { $0.hasSuffix(".json") })
    let text = try String(contentsOfFile: session + "/" + manifest, encoding: .utf8)
    #expect(text.contains("\"quality\":\"small\"") && text.contains("\"maxHoldMs\":2000"))
  }

  @Test func switchThatIsSetIsClearedByASourceOfHigherPriority() throws {
    let file = try file("spool = \(scratch.path("spool"))", "drain = true", "hls = true")
    let rows = try config(
      "--config", file, "--hls=false", environment: ["ENCODER_WORKER_DRAIN": "false", "ENCODER_WORKER_SENTRY": "true"])
    let values = Dictionary(uniqueKeysWithValues: rows.filter { $0.name != "limit" }.map { ($0.name, $0.value ?? "") })
    #expect(values["drain"] == "false" && values["hls"] == "false" && values["sentry"] == "true")
    // Without `drain = true` in the file, the worker would not exit.
    #expect(try run(["--config", file]).status == 0)
    #expect(try run(["--spool", scratch.path("spool"), "--drain=true"]).status == 0)
    #expect(try run(["--spool", scratch.path("spool"), "--drain", "--verbose=false"]).status == 0)
    let wrong = try run(["--config", file], ["ENCODER_WORKER_DRAIN": "yes"])
    #expect(wrong.status == 64 && wrong.errors.contains("ENCODER_WORKER_DRAIN: 'drain' is true or false, not 'yes'"))
  }

  @Test func valuesOfARepeatableOptionAccumulateByPriority() throws {
    let file = try file("limit = side=4", "limit = frames=600")
    let environment = ["ENCODER_WORKER_LIMIT": "side=8192, layers=2  ratio=3"]
    let rows = try config("encode", "--limit", "layers=3", "--config", file, environment: environment)
    let limits = rows.filter { $0.name == "limit" }
    #expect(limits.map(\.value) == ["frames=600", "side=8192", "ratio=3", "layers=3"])
    #expect(limits.map(\.line) == [2, nil, nil, nil])
    // The file's limit alone refuses every frame.
    let batch = Fixture("exact-1fps").path
    let output = scratch.path("output")
    #expect(try run(["encode", batch, "--output", output, "--config", file]).status == 65)
    #expect(try run(["encode", batch, "--output", output, "--config", file, "--limit", "side=8192"]).status == 0)
  }

  @Test func oneFileServesAllCommands() throws {
    let file = try file("spool = \(scratch.path("spool"))", "max-side = 500", "gaps = cut", "quality = small")
    #expect(try run(["--drain", "--config", file]).status == 0)
    #expect(try run(["status", "--config", file]).status == 0)
    #expect(try run(["quarantine", "--config", file]).status == 0)
    #expect(try run(["quarantine", "list", "--config", file]).status == 0)
    #expect(try config("reencode", "--config", file).first { $0.name == "max-side" }?.value == "500")
    let names = ["spool", "store", "unsigned", "store-header", "notify", "notify-secret-file"]
    #expect(try config("quarantine", "retry", "--config", file).map(\.name) == names)
  }

  @Test(arguments: [
    ("max-hodl = 3", ":1: no command has an option 'max-hodl'; is 'max-hold' meant?"),
    ("\nMAX_HOLD = 3", ":2: no command has an option 'MAX_HOLD'; is 'max-hold' meant?"),
    ("something = else", ":1: no command has an option 'something'; see --help"),
    ("max-hold 3", ":1: 'max-hold 3' is no setting"),
    ("max-hold =", ":1: max-hold has no value"),
    ("max-hold = 3000 # ms", ":1: '3000 # ms' has a comment behind it"),
    ("max-hold = 3000\r\nmax-hold = 3000", ":2: a second 'max-hold'"),
    ("session = 9f0c", ":1: 'session' is no setting: it concerns one call"),
    ("config = /other", ":1: 'config' is no setting"),
    ("drain = 1", ":1: 'drain' is true or false, not '1'"),
    ("max-hold = soon", ":1: The value 'soon' is invalid for '--max-hold"),
    ("jobs = 1\nmax-hold = 0", ":2: --max-hold is between 1 and 86400000"),
    ("quality = fine", ":1: The value 'fine' is invalid for '--quality"),
    ("limit = side=3\nlimit = sides=3\nlimit = pixels=4", ":2: The value 'sides=3' is invalid for '--limit"),
  ])
  func errorInAFileIsReportedWithItsLine(text: String, message: String) throws {
    let file = try file(text)
    for words in [["--spool", scratch.path("spool"), "--drain"], ["config"]] {
      let result = try run(words + ["--config", file])
      #expect(result.status == 64 && result.output.isEmpty, "\(words)")
      #expect(result.errors.hasPrefix("Error: \(file)\(message)"), "\(result.errors)")
    }
    #expect(!FileManager.default.fileExists(atPath: scratch.path("spool")))
  }

  @Test func errorInTheEnvironmentIsReportedWithItsVariable() throws {
    for (variable, value) in [
      ("ENCODER_WORKER_MAX_HODL", "3"), ("ENCODER_WORKER_MAX_HOLD", "soon"), ("ENCODER_WORKER_MAX_HOLD", "0"),
      ("ENCODER_WORKER_TO", "film.mp4"), ("ENCODER_WORKER_LIMIT", "frames=3,nothing=3"),
      ("ENCODER_WORKER_SUPPORT", "me"),
    ] {
      let result = try run(["--spool", scratch.path("spool"), "--drain"], [variable: value])
      #expect(result.status == 64 && result.errors.contains("environment \(variable): "), "\(result.errors)")
    }
  }

  @Test func invalidValueOfEverySettingIsRefused() throws {
    // Options with a number or with fixed values refuse other values; the others accept any name.
    let names = try config("run").filter { $0.value != "false" }.map(\.name)
    #expect(names.contains("max-time") && names.contains("limit"))
    for name in names where !["spool", "output", "host", "text-language"].contains(name) {
      let result = try run(["config"], ["ENCODER_WORKER_CONFIG": try file("", "\(name) = nonsense")])
      #expect(result.status == 64 && result.errors.contains("settings.conf:2: "), "\(name): \(result.errors)")
    }
  }

  @Test func variablesOfOrchestratorsAreIgnored() throws {
    let environment = [
      "ENCODER_WORKER_SERVICE_HOST": "10.0.0.1", "ENCODER_WORKER_SERVICE_PORT_HTTP": "80",
      "ENCODER_WORKER_PORT": "tcp://10.0.0.1:80", "ENCODER_WORKER_PORT_80_TCP_ADDR": "10.0.0.1", "ENCODER_WORKER": "x",
    ]
    #expect(try run(["--spool", scratch.path("spool"), "--drain"], environment).status == 0)
  }

  @Test func invalidSettingsFileIsWrongUsage() throws {
    for path in [scratch.path("nothing"), scratch.path, "/dev/zero", EncoderWorker.path] {
      let result = try run(["--drain", "--spool", scratch.path("spool"), "--config", path])
      #expect(result.status == 64 && result.errors.contains(path), "\(result.errors)")
    }
  }

  @Test func helpIsPrintedDespiteInvalidSettings() throws {
    let environment = ["ENCODER_WORKER_CONFIG": scratch.path("nothing"), "ENCODER_WORKER_NONSENSE": "1"]
    for words in [
      ["--help"], ["help", "run"], ["encode", "--help"], ["--version"], ["--generate-completion-script", "bash"],
    ] {
      let result = try run(words, environment)
      #expect(result.status == 0 && !result.output.isEmpty, "\(words)")
    }
  }

  @Test func configPrintsATable() throws {
    let lines = try run(["config", "encode", "--max-hold", "7"]).text.split(separator: "\n")
    #expect(lines.first?.split(separator: " ") == ["name", "value", "from"])
    #expect(lines.contains { $0.split(separator: " ") == ["max-hold", "7", "flag"] })
    #expect(!lines.contains { $0.hasPrefix("spool") || $0.hasPrefix("session ") || $0.hasPrefix("json") })
  }
}
