import FileSystem
import Foundation
import TestSupport
import Testing

@testable import FrameBatches

@Suite struct BatchListTests {
  @Test(arguments: [
    ("", []), ("\n\n", []), ("a", ["a"]), ("a\n", ["a"]), ("a\n\nb/c@1\n", ["a", "b/c@1"]),
    ("# a\n b \n", ["# a", " b "]),
    ("a\0b\nc\0", ["a", "b\nc"]), ("./-\n", ["./-"]), ("ä\n", ["ä"]),
  ])
  func pathsAreSeparatedByNewlinesOrZeroBytes(text: String, paths: [String]) throws {
    #expect(try BatchList(Array(text.utf8), called: "list").paths == paths)
  }

  @Test func invalidPathIsNamedWithItsLine() throws {
    #expect(throws: Failure(.usage, "list:3: - is no path; write ./- for a file of this name")) {
      try BatchList(Array("a\n\n-\n".utf8), called: "list")
    }
    #expect(throws: Failure(.usage, "list:2: a path that is not UTF-8; give the batch another name")) {
      try BatchList(Array("a\n".utf8) + [0xFF], called: "list")
    }
  }

  @Test func listAboveTheSizeLimitIsRefused() throws {
    #expect(throws: Failure(.usage, "/dev/zero: more than \(BatchList.sizeLimit) bytes; split the list")) {
      try BatchList(reading: "/dev/zero")
    }
  }

  @Test(arguments: ["gap", "a@1", "9f0c2a@1767859512340", "ä"])
  func shardOfANameMatchesSha256sum(name: String) throws {
    let sum = try Tool.run("sha256sum", [], input: Data(name.utf8)).text.prefix(8)
    let number = try #require(Int(sum, radix: 16))
    for count in [1, 2, 3, 8, 1_000] {
      let own = (0..<count).filter { Shard("\($0)/\(count)")!.contains(name: Array(name.utf8)) }
      #expect(own == [number % count])
    }
  }

  @Test func shardsOfManyNamesAreAboutEqual() throws {
    var sizes = [Int](repeating: 0, count: 8)
    for number in 0..<8_000 {
      let name = Array("9f0c2a@\(1_767_859_512_340 + number * 60_000)".utf8)
      for index in 0..<8 where Shard("\(index)/8")!.contains(name: name) { sizes[index] += 1 }
    }
    #expect(sizes.reduce(0, +) == 8_000)
    #expect(sizes.allSatisfy { (900...1_100).contains($0) }, "\(sizes)")
  }

  @Test(arguments: [
    "", "1", "/", "1/", "/2", "2/2", "-1/2", "0/0", "0/-1", "0/2/3", "a/b", "0 /2", "99999999999999999999/1",
  ])
  func invalidShardIsRefused(text: String) {
    #expect(Shard(text) == nil)
  }

  @Test func outputBelowABatchFolderIsRefused() throws {
    let scratch = try ScratchDirectory()
    let folder = try BatchDirectory(opening: scratch.directory("batches") + "/")
    _ = try scratch.directory("other")
    try FileManager.default.createSymbolicLink(atPath: scratch.path("link"), withDestinationPath: folder.path)
    for output in ["batches", "batches/output", "batches/not/yet", "link/output"] {
      #expect(!folder.allows(output: scratch.path(output)), "\(output)")
    }
    for output in ["output", "batches2", "other/batches", "."] {
      #expect(folder.allows(output: scratch.path(output)), "\(output)")
    }
  }
}
