import Foundation
import TestSupport
import Testing

@testable import FileSystem

@Suite struct ShellWordTests {
  @Test(arguments: ["out", "/srv/a-b_c.1", "a b", "it's", "", "$HOME", "*", "`id`", "a\nb", "é", "--x=1", "~"])
  func shellReadsTheWordBack(text: String) throws {
    let read = try Tool.output("sh", ["-c", "printf %s \(text.shellWord)"])
    #expect(String(decoding: read, as: UTF8.self) == text)
  }

  @Test func plainPathsHaveNoQuotes() { #expect("/srv/replay-1/out.mp4".shellWord == "/srv/replay-1/out.mp4") }
}
