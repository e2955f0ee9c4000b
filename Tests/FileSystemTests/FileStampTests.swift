import Foundation
import TestSupport
import Testing

@testable import FileSystem

@Suite struct FileStampTests {
  @Test func checkThatFailsIsNoMissingFile() throws {
    let scratch = try ScratchDirectory()
    try scratch.file("file", [1])
    try FileManager.default.createSymbolicLink(
      atPath: scratch.path("loop"), withDestinationPath: scratch.path("loop"))
    let directory = try Directory(opening: scratch.path)
    #expect(try directory.checkedStamp(of: "file")?.size == 1)
    #expect(try directory.checkedStamp(of: "file") == directory.stamp(of: "file"))
    for missing in ["none", "none/file", "file/file"] { #expect(try directory.checkedStamp(of: missing) == nil) }
    #expect(throws: DiskError("stat", scratch.path("loop/file"), code: ELOOP)) {
      try directory.checkedStamp(of: "loop/file")
    }
  }
}
