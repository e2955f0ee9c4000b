import FileSystem
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Ingesting

@Suite struct ReceiptLogTests {
  private let scratch: ScratchDirectory
  private let log: ReceiptLog
  private let digest = SHA256.hex(of: [1])

  init() throws {
    scratch = try ScratchDirectory()
    log = try ReceiptLog(in: scratch.path("ingested"))
  }

  private func add(_ name: String, atMs: Int64 = WallClock.nowMs) throws {
    try log.withShard(of: name) { try $0.add(ReceiptLog.Entry(name: name, digest: digest, atMs: atMs)) }
  }

  @Test func receiptIsFoundByItsWholeName() throws {
    for name in ["a b.tar", "ä", "a", "a b"] { try add(name, atMs: 7) }
    let again = try ReceiptLog(in: scratch.path("ingested"))
    for name in ["a b.tar", "ä", "a", "a b"] {
      #expect(try again.receipt(of: name) == ReceiptLog.Entry(name: name, digest: digest, atMs: 7))
    }
    #expect(try again.receipt(of: "b.tar") == nil)
  }

  @Test func tornLineIsNoReceiptAndIsReplaced() throws {
    try add("a")
    let file = scratch.path("ingested/" + (try names(in: scratch.path("ingested"))[0]))
    let whole = try Data(contentsOf: URL(fileURLWithPath: file))
    try (whole + whole.dropLast(1)).write(to: URL(fileURLWithPath: file))
    #expect(try log.receipt(of: "a") != nil)
    try add("a")
    #expect(try Data(contentsOf: URL(fileURLWithPath: file)).count == 2 * whole.count)
  }

  @Test func namesOfOneShardWaitForEachOther() throws {
    let inside = Atomic(0)
    let most = Atomic(0)
    let group = ThreadGroup()
    for _ in 0..<8 {
      try group.start { [log] in
        for _ in 0..<20 {
          try? log.withShard(of: "one") { _ in
            most.max(inside.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
            usleep(100)
            inside.subtract(1, ordering: .relaxed)
          }
        }
      }
    }
    group.join()
    #expect(most.load(ordering: .relaxed) == 1)
  }

  @Test func oldReceiptsAreForgotten() throws {
    try add("old", atMs: WallClock.nowMs - ReceiptLog.ageMs - 1_000)
    try add("new")
    for number in 0..<1_024 { try log.sweep(number) }
    #expect(try log.receipt(of: "old") == nil && log.receipt(of: "new") != nil)
  }

  @Test func shardKeepsTheNewestReceipts() throws {
    // Names of one shard.
    for number in 0..<1_200 {
      try log.withShard(of: "one") {
        try $0.add(ReceiptLog.Entry(name: "\(number)", digest: digest, atMs: WallClock.nowMs))
      }
    }
    try log.withShard(of: "one") { shard in
      #expect(shard.receipt(of: "1199") != nil && shard.receipt(of: "0") == nil)
    }
  }
}
