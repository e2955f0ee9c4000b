import Synchronization
import Testing

@testable import FileSystem

/// The free space that writers leave on a disk.
@Suite struct FreeSpaceTests {
  private func rule(_ minimum: Int, free: Int) -> FreeSpace {
    var rule = FreeSpace(minimum: minimum)
    rule.freeBytes = { _ in free }
    return rule
  }

  @Test func bytesThatAreWrittenLeaveTheMinimum() throws {
    try rule(100, free: 100).require(at: "/disk")
    try rule(100, free: 130).require(for: 30, at: "/disk")
    let failure = #expect(throws: LowDiskSpace.self) { try rule(100, free: 130).require(for: 31, at: "/disk") }
    #expect(failure?.description == "130 bytes free on the disk of /disk, less than the 100 of --min-free")
    #expect(throws: LowDiskSpace.self) { try rule(100, free: 99).require(at: "/disk") }
    #expect(try rule(100, free: 130).room(at: "/disk") == 30 && rule(100, free: 99).room(at: "/disk") == 0)
  }

  @Test func ruleWithoutAMinimumAsksNothing() throws {
    let asked = Mutex(0)
    var rule = FreeSpace()
    rule.freeBytes = { _ in
      asked.withLock { $0 += 1 }
      return 10
    }
    try rule.require(at: "/disk")
    #expect(asked.withLock { $0 } == 0)
    #expect(throws: LowDiskSpace.self) { try rule.atLeast(11).require(at: "/disk") }
    #expect(rule.atLeast(11).minimum == 11 && FreeSpace(minimum: 12).atLeast(11).minimum == 12)
  }
}
