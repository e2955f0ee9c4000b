import Foundation
import TestSupport
import Testing

/// The checks give the same result on every machine: another Python or ffmpeg may come first on the path.
@Suite struct EnvironmentTests {
  /// A directory whose programs fail, as those of an environment without packages do, and a module that hides Python's.
  private struct Intruder {
    let scratch: ScratchDirectory
    let variables: [String: String]

    init() throws {
      scratch = try ScratchDirectory()
      let programs = try scratch.directory("bin")
      for name in ["python3", "python", "pip", "ffmpeg", "ffprobe", "mediainfo", "zstd", "strace", "redis-server"] {
        let path = try scratch.file("bin/\(name)", Array("#!/bin/sh\necho 'the wrong \(name)' >&2\nexit 97\n".utf8))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
      }
      try scratch.file("json.py", Array("raise ImportError('the wrong json')\n".utf8))
      let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
      variables = [
        "PATH": "\(programs):\(path)", "PYTHONPATH": scratch.path, "HOME": scratch.path("missing"),
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "America/St_Johns", "TMPDIR": try scratch.directory("a directory for temporary files"),
        "ENCODER_WORKER_QUALITY": "small", "GIT_DIR": scratch.path("missing.git"), "PIP_REQUIRE_VIRTUALENV": "1",
      ]
    }

    /// Runs a program as the scripts do, after `scripts/environment`.
    func run(_ words: String...) throws -> Tool.Result {
      try Tool.run(
        "/bin/sh", ["-euc", #"umask 077; . scripts/environment; exec "$@""#, "sh"] + words, in: Fixture.root,
        environment: variables)
    }
  }

  @Test func scriptsFindDebiansProgramsWhateverComesFirstOnThePath() throws {
    let shown = #"""
      umask; for name in ffmpeg ffprobe python3; do command -v $name; done; command -v swift >/dev/null && echo swift
      [ -w "$HOME" ] && echo home; echo "$LC_ALL ${PYTHONPATH-} ${GIT_DIR-} ${ENCODER_WORKER_QUALITY-}"
      """#
    let result = try Intruder().run("/bin/sh", "-c", shown)
    #expect(
      result.text.split(separator: "\n") == [
        "0022", "/usr/bin/ffmpeg", "/usr/bin/ffprobe", "/usr/bin/python3", "swift", "home", "C.UTF-8   ",
      ], "\(result.errors)")
  }

  /// One script of each kind: with modules of Debian, with other programs, with the program under test, written in shell.
  @Test(arguments: [
    ["scripts/prose", "README.md"],
    ["scripts/architecture"],
    ["scripts/cli-page", "WORKER"],
    ["packaging/share", "WORKER", "SCRATCH/share"],
    ["Fuzzing/seeds.py", "SCRATCH/seeds"],
    ["/usr/bin/python3", "Tests/torture/attacks.py", "zeros", "SCRATCH/attack", "SCRATCH/victim"],
    ["/usr/bin/python3", "Tests/torture/mutate.py", "WORKER", "--count", "1", "--seed", "1"],
    ["scripts/setup", "demo"],
  ])
  func helperScriptRunsWithAnEmptyPythonFirstOnThePath(call: [String]) throws {
    let intruder = try Intruder()
    let words = call.map {
      $0.replacing("WORKER", with: EncoderWorker.path).replacing("SCRATCH", with: intruder.scratch.path)
    }
    let result = try Tool.run(
      "/bin/sh", ["-euc", #". scripts/environment; exec "$@""#, "sh"] + words, in: Fixture.root,
      environment: intruder.variables)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(!result.errors.contains("the wrong"))
  }

  @Test func noScriptCallsThePythonThatComesFirstOnThePath() throws {
    // A command at the start of a line, or after a separator. Names of packages and of files do not match.
    let bare = try Regex(#"(^#!.*env python|(^\s*|[;&|(]\s*|\bexec |\brun )python3? |"python3")"#)
    for file in try Self.files() {
      let text = try String(contentsOf: Fixture.root.appendingPathComponent(file), encoding: .utf8)
      for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
        #expect(try bare.firstMatch(in: line) == nil, "\(file):\(number + 1): name /usr/bin/python3: \(line)")
      }
    }
  }

  @Test func everyShellScriptOfTheProjectSetsItsEnvironment() throws {
    for file in try Self.files() where file.hasPrefix("scripts/") || file.hasPrefix("packaging/") {
      let text = try String(contentsOf: Fixture.root.appendingPathComponent(file), encoding: .utf8)
      // Those in packaging/debian run on the machine that installs the package.
      guard text.hasPrefix("#!/bin/sh"), !file.hasPrefix("packaging/debian/") else { continue }
      #expect(text.contains("/environment"), "\(file): source scripts/environment after cd")
    }
  }

  /// The text files behind the checks, as paths from the root.
  private static func files() throws -> [String] {
    let found = ["scripts", "packaging", "Tests", "Benchmarks", "Fuzzing", "fixtures"].flatMap { folder in
      let names = try? FileManager.default.subpathsOfDirectory(
        atPath: Fixture.root.appendingPathComponent(folder).path)
      return (names ?? []).map { "\(folder)/\($0)" }
    }
    let scripts = found.filter { path in
      let name = path.split(separator: "/").last ?? ""
      return !path.contains("/.build")
        && (!name.contains(".") || [".py", ".sh", ".swift"].contains { name.hasSuffix($0) })
        && path != "Tests/EndToEnd/SystemTests/EnvironmentTests.swift" && !path.hasPrefix("Fuzzing/regressions/")
    }
    let texts = scripts.filter { path in
      (try? String(contentsOf: Fixture.root.appendingPathComponent(path), encoding: .utf8)) != nil
    }
    try #require(texts.count > 100)
    return texts + ["Makefile", ".ci/run"]
  }
}
