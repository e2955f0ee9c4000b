@testable import FileSystem
@testable import Remote
@testable import WorkQueues

/// Reads what a Redis sends: the bytes of its replies, and the replies of scripts.
enum RedisFuzzing {
  /// Without hiredis, nothing is read.
  private static let library = Result { try RedisConnection.hiredis.functions() }
  private static let longest = 16

  /// - Parameter bytes: the length of the pieces in which the replies come, less one; the replies.
  static func read(_ bytes: [UInt8]) {
    guard let library = try? library.get(), let reader = try? RedisReplyReader(library) else { return }
    let size = 1 + Int(bytes.first ?? 0)
    var rest = bytes.dropFirst()
    do {
      while !rest.isEmpty {
        if let reply = try reader.read(rest.prefix(size)) {
          check(reply)
          reader.begin()
        }
        rest = rest.dropFirst(size)
      }
    } catch {
      checkLine(error.cause)
    }
  }

  private static func check(_ reply: RedisReply) {
    if let count = reply.count { require((0...1 << 40).contains(count), "a count that can be added") }
    if case .refusal(let text) = reply { checkLine(text) }
    require(reply.digest.map { $0.utf8.count == 40 } ?? true, "a digest of 40 digits")
    require(reply.group.map { $0.utf8.count <= RedisReply.maximumGroupBytes } ?? true, "a short group")
    if let entry = reply.entry { check(entry) }
    if case .entry(let entry)? = reply.next { check(entry) }
    let entries = reply.entries(atMost: longest) ?? []
    require(entries.count <= longest, "no more entries than asked for")
    entries.forEach(check)
    if let held = reply.heldCounts { require(held.all >= 0 && held.own >= 0, "counts of held entries") }
    require(reply.lost(of: ["1-0", "2-0"])?.allSatisfy { ["1-0", "2-0"].contains($0) } ?? true, "entries asked for")
    check(RedisInfo(reply))
    reply.list?.forEach(check)
  }

  private static func check(_ entry: StreamEntry) {
    let claim = entry.claim
    require(claim.id.utf8.count <= 41 && claim.id.utf8.allSatisfy { (45...57).contains($0) }, "an ID of two numbers")
    require((0...1 << 40).contains(claim.attempt) && (0...1 << 40).contains(claim.failures), "counts that can be added")
    require(entry.fault != nil || QueuedName.fault(of: claim.name) == nil, "a name that can be queued")
  }

  private static func check(_ info: RedisInfo) {
    _ = info.generation
    NonDurableRedis(queue: "q", weaknesses: info.weaknesses).risk.split(separator: "; ").map(String.init).forEach(
      checkLine)
    info.line("redis_version").map(checkLine)
  }

  /// Checks a text of Redis that is logged. Escapes of its 500 bytes have up to six times as many.
  private static func checkLine(_ text: String) {
    require(text.utf8.count <= 4_000 && text.oneLine == text, "a short line")
  }
}
