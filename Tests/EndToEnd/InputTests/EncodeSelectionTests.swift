import Foundation
import TestSupport
import Testing

/// `encode` selects the right batches, and a repeated call gives the same result.
@Suite struct EncodeSelectionTests {
  private let scratch: ScratchDirectory
  private let folder: String

  init() throws {
    scratch = try ScratchDirectory()
    folder = try scratch.directory("batches")
  }

  /// Adds a batch of one picture.
  private func add(_ name: String) throws {
    let path = try scratch.directory("batches/" + name)
    let frame = "1767859512340.jpg"
    try Data(Fixture("single-frame").bytes(frame)).write(to: URL(fileURLWithPath: path + "/" + frame))
  }

  private func encode(_ arguments: String..., input: String = "") throws -> Tool.Result {
    try Tool.run(
      EncoderWorker.path, ["encode", "--output", scratch.path("output")] + arguments, input: Data(input.utf8))
  }

  /// Returns the batches that the output reports, in order.
  private func told(_ result: Tool.Result) -> [String] {
    result.text.split(separator: "\n").filter { $0.contains(": ") }.map { String($0.prefix { $0 != ":" }) }
  }

  @Test func directoryOfBatchesIsEncodedInOrderWithoutIncompleteEntries() throws {
    for name in ["b", "a", "Z", ".hidden", "half.tmp", "half.part"] { try add(name) }
    try Tool.output("tar", ["-cf", folder + "/c.tar", "-C", Fixture("gap").path, "."])
    let result = try encode("--batches", folder, "--jobs", "1")
    #expect(result.status == 0, "\(result.errors)")
    #expect(told(result) == ["Z", "a", "b", "c.tar"])
    #expect(try names(in: scratch.path("output")) == [".staging", "Z", "a", "b", "gap"])
  }

  @Test func listOfBatchesIsEncodedInItsOrder() throws {
    for name in ["a", "b", "with\nline"] { try add(name) }
    let lines = try scratch.file("list", Array("\(folder)/b\n\n\(folder)/a".utf8))
    #expect(told(try encode("--files-from", lines, "--jobs", "1")) == ["b", "a"])
    #expect(told(try encode("--files-from", "-", "--jobs", "1", input: "\(folder)/a\n\(folder)/b\n")) == ["a", "b"])
    let zeros = try encode("--files-from", "-", "--session", "lines", input: "\(folder)/with\nline\0")
    #expect(zeros.status == 0 && zeros.text.hasPrefix(#"with\nline: published"#), "\(zeros.text)\(zeros.errors)")
    let piped = try Tool.run(
      "bash",
      [
        "-c", #""$1" encode --files-from <(find "$2" -name a) --output "$3""#, "-", EncoderWorker.path, folder,
        scratch.path("output"),
      ])
    #expect(told(piped) == ["a"], "\(piped.errors)")
  }

  @Test func batchesNamedLikePartsOfASessionGetAHintThatJoinsThem() throws {
    for name in ["s01-0", "s01-1"] {
      try add(name)
      try Tool.output("tar", ["-czf", folder + "/\(name).tar.gz", "-C", folder + "/" + name, "."])
    }
    let batches = ["s01-0", "s01-1"].map { "\(folder)/\($0).tar.gz" }
    let hint = "s01-0 and s01-1 are 2 sessions; if they are parts of one, use --session-from '{session}-{part}'"
    let shown = try Tool.run(EncoderWorker.path, ["encode", "--dry-run"] + batches)
    #expect(shown.status == 0 && shown.errors.contains(hint), "\(shown.errors)")
    let result = try encode(batches[0], batches[1])
    #expect(result.status == 0 && result.errors.contains(hint), "\(result.errors)")
    let joined = try encode(batches[0], batches[1], "--session-from", "{session}-{part}")
    #expect(!joined.errors.contains("--session-from"), "\(joined.errors)")
    #expect(try names(in: scratch.path("output")).contains("s01"))
    let named = try encode(batches[0], batches[1], "--session", "all")
    #expect(!named.errors.contains("--session-from"), "\(named.errors)")
  }

  @Test func aBadEntryDoesNotStopTheOthers() throws {
    try add("good")
    try Data("what is this".utf8).write(to: URL(fileURLWithPath: folder + "/bad"))
    try FileManager.default.createSymbolicLink(atPath: folder + "/link", withDestinationPath: Fixture("gap").path)
    let raw: [CChar] = (folder + "/").utf8CString.dropLast() + [-1, 0]
    #expect(mkdir(raw, 0o700) == 0)
    let result = try encode("--batches", folder)
    #expect(result.status == 65)
    #expect(told(result) == ["good"])
    #expect(result.errors.contains("read bad: no known format"))
    #expect(result.errors.contains("read link: a symbolic link; send the file or the folder that it leads to"))
    #expect(result.errors.contains("read %FF: a name that is not UTF-8; give it another name"))
  }

  @Test func shardsOfADirectoryAreDisjointCompleteAndStableWhenItGrows() throws {
    for number in 0..<12 { try add("s@\(number)") }
    func shards() throws -> [Set<String>] {
      try (0..<3).map { Set(told(try encode("--batches", folder, "--shard", "\($0)/3", "--session", "s"))) }
    }
    let before = try shards()
    #expect(before.reduce(0) { $0 + $1.count } == 12)
    #expect(before.reduce(Set<String>()) { $0.union($1) } == Set((0..<12).map { "s@\($0)" }))
    for number in 0..<6 { try add("earlier@\(number)") }
    let after = try shards()
    #expect(zip(before, after).allSatisfy { $0.isSubset(of: $1) })
    #expect(after.reduce(0) { $0 + $1.count } == 18)
  }

  @Test func invalidShardIsRefusedWithTheValidRange() throws {
    let result = try encode("--batches", folder, "--shard", "3/3")
    #expect(result.status == 64)
    #expect(result.errors.contains("The value '3/3' is invalid for '--shard <i/n>': write I/N, with I from 0 to N-1"))
  }

  @Test func emptyInputExitsWith0() throws {
    for result in [try encode("--batches", folder), try encode("--files-from", "-")] {
      #expect(result.status == 0 && result.text.isEmpty)
      #expect(result.errors == "no batch to encode\n")
    }
  }

  @Test func wrongUsageIsRefusedWithAdvice() throws {
    try add("a")
    let calls: [([String], String)] = [
      ([], "no batch; name some"), (["a", "--batches", folder], "one of them"),
      (["--files-from", "-", "--batches", folder], "one of them"),
      (["--batches", folder + "/none"], "check --batches"),
      (["--batches", folder + "/a/1767859512340.jpg"], "check --batches"),
      (["--files-from", folder + "/none"], "check --files-from"),
      (["--files-from", folder], "name a directory of batches with --batches"),
    ]
    for (arguments, said) in calls {
      let result = try Tool.run(EncoderWorker.path, ["encode", "--output", scratch.path("output")] + arguments)
      #expect(result.status == 64 && result.errors.contains(said), "\(arguments): \(result.status) \(result.errors)")
    }
    let inside = try Tool.run(EncoderWorker.path, ["encode", "--batches", folder, "--output", folder + "/output"])
    #expect(inside.status == 64 && inside.errors.contains("name an --output elsewhere"))
    #expect(try names(in: folder) == ["a"])
  }

  @Test func directoryOfBatchesGivenAsABatchIsRefusedWithAdvice() throws {
    try add("a@1")
    try add("a@2")
    let result = try encode(folder)
    #expect(result.status == 65)
    let advice = "it holds batches: encode each of them with --batches "
    #expect([folder, "'\(folder)'"].contains { result.errors.contains(advice + $0) })
    // An empty directory, or one with other contents, gets no such advice.
    let other = try scratch.directory("other/notes")
    #expect(!(try encode(other)).errors.contains("--batches"))
    #expect(!(try encode(scratch.path("other"))).errors.contains("--batches"))
  }

  @Test func impossiblePathInAListExitsWith65() throws {
    let file = try scratch.file("file", [1])
    for path in [file + "/below", scratch.path(String(repeating: "x", count: 300))] {
      let result = try encode("--files-from", "-", input: path)
      #expect(result.status == 65, "\(result.errors)")
    }
  }

  @Test func configShowsTheSourceOfBatches() throws {
    for arguments in [["a"], ["--files-from", "-"], ["--batches", folder], []] {
      let result = try Tool.run(EncoderWorker.path, ["config", "encode", "--output", "y"] + arguments)
      #expect(result.status == 0, "\(arguments): \(result.errors)")
    }
    let both = try EncoderWorker.run("config", "encode", "--output", "y", "--files-from", "-", "--batches", folder)
    #expect(both.status == 64)
  }

  /// A run that is killed at any point and repeated gives the same bytes as an uninterrupted run.
  @Test func killedRunIsRepeatedWithTheSameResult() throws {
    for name in ["gap", "rotation", "on-change", "exact-1fps"] {
      try FileManager.default.copyItem(atPath: Fixture(name).path, toPath: folder + "/" + name)
    }
    for number in 0..<12 { try add("s\(number)") }
    let alone = scratch.path("alone")
    #expect(try EncoderWorker.run("encode", "--batches", folder, "--output", alone).status == 0)
    let output = scratch.path("output")
    for published in [1, 4, 9] {
      let worker = try RunningWorker(["encode", "--batches", folder, "--output", output, "--jobs", "1"])
      while try manifests(in: output) < published, worker.isRunning { usleep(1_000) }
      worker.signal(SIGKILL)
      _ = try worker.wait()
    }
    let result = try encode("--batches", folder)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.text.contains(": published before: "))
    #expect(try snapshot(of: output).mapValues(\.bytes) == snapshot(of: alone).mapValues(\.bytes))
    let before = try snapshot(of: output)
    #expect(try encode("--batches", folder).status == 0)
    #expect(try snapshot(of: output) == before)
  }

  private func manifests(in output: String) throws -> Int {
    (FileManager.default.subpaths(atPath: output) ?? []).count { $0.hasSuffix(".mp4") }
  }
}
