import Foundation
import TestSupport
import Testing

/// The pauses between the attempts at a batch take a minute and a half. So this test is here, where others wait too.
@Suite struct DeadlineTests {
  @Test func aBatchThatTakesTooLongIsGivenUpAndOthersAreNot() throws {
    let spool = try TestSpool()
    // Minutes of work on any machine, beside a tenth of a second.
    try LargePictures.fill(spool.path + "/incoming/slow", frames: 1_000)
    try spool.add("exact-1fps")
    let result = try spool.drain("--max-time", "1")
    #expect(result.status == 65)
    let reason = try String(contentsOfFile: spool.path + "/quarantine/slow.reason.json", encoding: .utf8)
    #expect(reason.contains("stopped after 1 s, the limit of --max-time"))
    #expect(try names(in: spool.output + "/exact-1fps").contains("session.json"))
  }
}
