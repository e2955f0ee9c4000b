import Foundation
import TestSupport
import Testing

/// The manual page and the shell completions, which are generated from the program's help.
@Suite struct PackagingTests {
  private let scratch: ScratchDirectory
  private let manual: String

  init() throws {
    scratch = try ScratchDirectory()
    let script = Fixture.root.appendingPathComponent("packaging/share").path
    try Tool.output(script, [EncoderWorker.path, scratch.path("share")])
    manual = try String(contentsOfFile: scratch.path("share/man/man1/encoder-worker.1"), encoding: .utf8)
  }

  /// Returns bash's completions for the last of these words, in a directory with a file and a directory.
  private func completions(_ words: String...) throws -> [String] {
    let place = try scratch.directory("place/directory")
    try scratch.file("place/frame.jpg", [])
    let script = """
      . '\(scratch.path("share/bash-completion/completions/encoder-worker"))'
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
      _encoder-worker encoder-worker "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    let directory = URL(fileURLWithPath: place).deletingLastPathComponent()
    let output = try Tool.output("bash", ["-c", script, "bash", "encoder-worker"] + words, in: directory)
    return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  @Test func bashCompletesCommandsOptionsValuesAndPaths() throws {
    #expect(try completions("qu") == ["quarantine"])
    #expect(try Set(completions("quarantine", "")).isSuperset(of: ["list", "show", "retry", "purge"]))
    #expect(try completions("run", "--max-h") == ["--max-hold"])
    #expect(try completions("run", "--quality", "") == ["small", "balanced", "sharp"])
    #expect(try completions("encode", "--sandbox", "") == ["require", "auto", "off"])
    #expect(try completions("stitch", "--format", "") == ["mp4", "hls", "ffconcat"])
    #expect(try completions("run", "--spool", "") == ["directory"])
    #expect(try completions("status", "-o", "") == ["directory"])
    #expect(try completions("encode", "").sorted() == ["directory", "frame.jpg"])
    #expect(try completions("run", "--config", "").contains("frame.jpg"))
    #expect(try completions("config", "show", "reen") == ["reencode"])
  }

  @Test func completionsForOtherShellsExist() throws {
    let zsh = try String(contentsOfFile: scratch.path("share/zsh/vendor-completions/_encoder-worker"), encoding: .utf8)
    #expect(zsh.hasPrefix("#compdef encoder-worker"))
    let fish = try String(
      contentsOfFile: scratch.path("share/fish/vendor_completions.d/encoder-worker.fish"), encoding: .utf8)
    #expect(fish.contains("complete -c 'encoder-worker'"))
  }

  @Test func theManualPageHasEveryCommandAndOption() throws {
    struct Dump: Decodable {
      struct Command: Decodable {
        struct Argument: Decodable {
          struct Name: Decodable {
            let kind: String
            let name: String
          }
          let names: [Name]?
          let shouldDisplay: Bool
        }
        let commandName: String
        let subcommands: [Command]?
        let arguments: [Argument]?
      }
      let command: Command
    }
    let dump = try JSONDecoder().decode(Dump.self, from: EncoderWorker.run("--experimental-dump-help").output)
    for command in dump.command.subcommands ?? [] where command.commandName != "help" {
      let chapters = manual.components(separatedBy: "\n.Ss ").dropFirst()
      let own = chapters.filter {
        $0.split(whereSeparator: \.isWhitespace).first.map(String.init) == command.commandName
      }
      #expect(!own.isEmpty && manual.contains("\n.Cm \(command.commandName)"), "\(command.commandName)")
      for name in (command.arguments ?? []).filter(\.shouldDisplay).flatMap({ $0.names ?? [] })
      where name.kind == "long" && !["help", "version"].contains(name.name) {
        let written = "Fl \\-" + name.name.replacing("-", with: "\\-")
        #expect(own.contains { $0.contains(written) }, "\(command.commandName) \(name.name)")
      }
    }
  }

  @Test func manualPageHasItsStandardSections() {
    for name in ["NAME", "SYNOPSIS", "ENVIRONMENT", "FILES", "EXIT STATUS"] {
      #expect(manual.contains("\n.Sh \(name)\n"))
    }
    #expect(manual.contains("ENCODER_WORKER_CONFIG") && manual.contains("74 or 75"))
    // No line starts with a request character by accident, and none is empty: the format forbids both.
    #expect(!manual.contains("\n\n") && !manual.contains("\n'"))
  }

  @Test func serviceReadsThePackagedSettingsFile() throws {
    let packaging = Fixture.root.appendingPathComponent("packaging")
    let unit = try String(contentsOf: packaging.appendingPathComponent("encoder-worker.service"), encoding: .utf8)
    let lines = unit.split(separator: "\n")
    #expect(lines.contains("Environment=ENCODER_WORKER_CONFIG=/etc/encoder-worker.conf"))
    let start = try #require(lines.first { $0.hasPrefix("ExecStart=/usr/bin/encoder-worker ") })
    let words = start.split(separator: " ").dropFirst().map(String.init)
    let file = packaging.appendingPathComponent("encoder-worker.conf").path
    let result = try Tool.run(
      EncoderWorker.path, ["config"] + words, environment: ["ENCODER_WORKER_CONFIG": file])
    #expect(result.status == 0, "\(result.errors)")
    let spool = try #require(result.text.split(separator: "\n").first { $0.hasPrefix("spool ") })
    #expect(spool.contains(" /var/lib/encoder-worker "))
  }

  @Test func collectServiceReadsItsSpoolFromTheSettingsFile() throws {
    let packaging = Fixture.root.appendingPathComponent("packaging")
    let unit = try String(
      contentsOf: packaging.appendingPathComponent("encoder-worker-collect@.service"), encoding: .utf8)
    let lines = unit.split(separator: "\n")
    #expect(lines.contains("Environment=ENCODER_WORKER_CONFIG=/etc/encoder-worker.conf COLLECT="))
    #expect(lines.contains("ExecStart=/usr/bin/encoder-worker collect %f $COLLECT"))
    let result = try Tool.run(
      EncoderWorker.path, ["config", "collect", "/srv/shots", "--keep"],
      environment: ["ENCODER_WORKER_CONFIG": packaging.appendingPathComponent("encoder-worker.conf").path])
    #expect(result.status == 0 && result.text.contains("/var/lib/encoder-worker"), "\(result.errors)")
  }

  /// The units with the drop-in that allows a network. The program is at another path here.
  @Test(.enabled(if: access("/usr/bin/systemd-analyze", X_OK) == 0, "systemd is not installed"))
  func systemdTakesTheUnitsAndTheDropIn() throws {
    let packaging = Fixture.root.appendingPathComponent("packaging").path
    let units = try scratch.directory("units")
    _ = try scratch.directory("units/encoder-worker.service.d")
    try FileManager.default.copyItem(
      atPath: packaging + "/encoder-worker-network.conf", toPath: units + "/encoder-worker.service.d/network.conf")
    for unit in ["encoder-worker.service", "encoder-worker-collect@.service"] {
      let text = try String(contentsOfFile: "\(packaging)/\(unit)", encoding: .utf8)
      try scratch.file("units/" + unit, Array(text.replacing("/usr/bin/encoder-worker", with: EncoderWorker.path).utf8))
    }
    func verify(_ unit: String) throws -> String {
      let result = try Tool.run(
        "systemd-analyze", ["verify", "--man=no", "--recursive-errors=no", "\(units)/\(unit)"],
        environment: ["SYSTEMD_UNIT_PATH": units + ":"])
      return "\(result.status) \(result.text)\(result.errors)"
    }
    #expect(try verify("encoder-worker.service") == "0 ")
    #expect(try verify("encoder-worker-collect@srv-shots.service") == "0 ")
    // It reads the drop-in.
    try scratch.file("units/encoder-worker.service.d/network.conf", Array("[Service]\nPrivateNetwork=maybe\n".utf8))
    #expect(try verify("encoder-worker.service").contains("network.conf"))
  }
}
