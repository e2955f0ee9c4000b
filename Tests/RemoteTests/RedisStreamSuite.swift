import FileSystem
import Foundation
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// A suite with a Redis of its own, and what its tests do with a stream of names.
protocol RedisStreamSuite {
  var server: QueueServer { get }
}

extension RedisStreamSuite {
  func worker(
    _ name: String = "one", lease: Int = 60, forgetAfter: Int = 3_600,
    warn: @escaping @Sendable (String) -> Void = { _ in }
  ) throws -> RedisStream {
    try RedisStream(
      RedisURL(server.url), consumer: name, store: "s3://test/", lease: lease, allowsNonDurable: false,
      forgetAfter: forgetAfter, warn: warn)
  }

  func take(_ worker: RedisStream) throws -> RedisStream.Entry { try #require(try worker.next()) }

  /// Retries until a lease expires.
  func takeOver(_ worker: RedisStream) throws -> [RedisStream.Entry] {
    try firstValue(of: "a worker takes entries over") {
      let entries = try worker.takeOver()
      return entries.isEmpty ? nil : entries
    }
  }

  /// Sets the idle time of an entry to one hour, as if no worker had renewed it.
  func expire(_ entry: RedisStream.Entry, of worker: String) throws {
    try server.command(
      "XCLAIM", "encoder-worker", "encoder-worker", worker, "0", entry.id, "IDLE", "3600000", "JUSTID")
  }

  /// Seconds: a lease that a running worker with leases of one second always renews in time, even on a slow machine.
  static var longLease: Int { 4 }

  /// Returns a second worker that holds the entry, as if the first worker's lease had expired.
  func takeOver(_ entry: RedisStream.Entry, by name: String = "two") throws -> (RedisStream, RedisStream.Entry) {
    // Redis delivers the entry, as in a lost reply. So the test need not wait for a lease.
    try server.command("XCLAIM", "encoder-worker", "encoder-worker", name, "0", entry.id)
    let other = try worker(name)
    return (other, try #require(try other.takeOver().first))
  }

  func isEmpty() throws -> Bool {
    try server.command("XLEN", "encoder-worker") == ["0"] && server.command("HLEN", "{encoder-worker}:batches") == ["0"]
  }

  /// The fields of the dead letters.
  func deadLetters() throws -> [[String: String]] {
    let script = """
      local all = {}
      for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
        local fields = {}
        for i = 1, #entry[2], 2 do fields[entry[2][i]] = string.gsub(entry[2][i + 1], '[^\\32-\\126]', '?') end
        all[#all + 1] = cjson.encode(fields)
      end
      return all
      """
    return try server.command("EVAL", script, "1", "{encoder-worker}:dead").filter { !$0.isEmpty }.map {
      try JSONDecoder().decode([String: String].self, from: Data($0.utf8))
    }
  }
}
