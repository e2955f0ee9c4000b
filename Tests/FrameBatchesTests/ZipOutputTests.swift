import Foundation
import TestSupport
import Testing

@testable import FrameBatches

/// A zip that is written can be read, and has the same bytes each time.
@Suite struct ZipOutputTests {
  private func zip(_ files: [(name: String, bytes: [UInt8])]) throws -> [UInt8] {
    var bytes: [UInt8] = []
    let zip = try ZipOutput { bytes += $0 }
    for (name, content) in files { try zip.add(name, content) }
    try zip.finish()
    return bytes
  }

  @Test func stockToolReadsWhatIsWritten() throws {
    let files: [(name: String, bytes: [UInt8])] = [
      ("2026-01-08T08-05-12.340Z.jpg", Array("picture".utf8)), ("empty", []),
      ("pictures.jsonl", (0..<200_000).map { UInt8($0 % 251) }),
    ]
    let bytes = try zip(files)
    #expect(try zip(files) == bytes)
    let scratch = try ScratchDirectory()
    let path = try scratch.file("pictures.zip", bytes)
    try Tool.output(
      Tool.python,
      ["-c", "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])", path, scratch.path("all")])
    #expect(try names(in: scratch.path("all")) == files.map(\.name).sorted())
    for (name, content) in files {
      #expect(try Data(contentsOf: URL(fileURLWithPath: scratch.path("all/" + name))) == Data(content))
    }
  }

  private struct FullDisk: Error {}

  @Test func failureOfTheFileIsThrownAsItIs() throws {
    var written = 0
    let zip = try ZipOutput { bytes in
      written += bytes.count
      if written > 100_000 { throw FullDisk() }
    }
    #expect(throws: FullDisk.self) {
      for number in 0..<100 { try zip.add("\(number)", [UInt8](repeating: 1, count: 10_000)) }
    }
  }
}
