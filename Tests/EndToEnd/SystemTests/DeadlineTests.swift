import Foundation
import TestSupport
import Testing

/// The pauses between the attempts at a batch take 90 seconds. So this test is among the slow ones.
@Suite struct DeadlineTests {
  @Test func batchBeyondItsTimeoutIsGivenUpAndOthersArePublished() throws {
    let spool = try TestSpool()
    // The slow batch takes minutes on any machine. The other batch takes a tenth of a second.
    try LargePictures.fill(spool.path + "/incoming/slow", frames: 1_000)
    try spool.add("exact-1fps")
    let result = try spool.drain("--max-time", "1")
    #expect(result.status == 65)
    let reason = try String(contentsOfFile: spool.path + "/quarantine/slow.reason.json", encoding: .utf8)
    #expect(reason.contains("stopped after 1 s, the limit of --max-time"))
    #expect(try names(in: spool.output + "/exact-1fps").contains("session.json"))
  }
}
