import FileSystem
import Testing

@testable import Remote
@testable import encoder_worker

@Suite struct RedisURLTests {
  @Test func addressWithoutPortAndStreamUsesTheDefaults() throws {
    let url = try RedisURL("redis://queue.example")
    #expect(url.server == .host("queue.example", port: 6_379))
    #expect(url.user == nil && url.password == nil && url.database == 0 && url.stream == "encoder-worker")
    #expect(url.description == "redis://queue.example:6379")
  }

  @Test func allPartsOfAnAddressAreRead() throws {
    let url = try RedisURL("redis://worker:s%40fe%2F%3F@[::1]:7000/3?stream=replay%3Aeu")
    #expect(url.server == .host("::1", port: 7_000))
    #expect(url.user == "worker" && url.password == "s@fe/?" && url.database == 3 && url.stream == "replay:eu")
    #expect(url.description == "redis://[::1]:7000/3?stream=replay:eu")
    #expect(try RedisURL("redis://:a@b@host").password == "a@b")
    #expect(try RedisURL("redis://:only@host").user == nil)
  }

  @Test func unixAddressIsASocketPath() throws {
    let url = try RedisURL("unix:///run/redis/my%20redis.sock?stream=s&db=2")
    #expect(url.server == .socket("/run/redis/my redis.sock") && url.database == 2 && url.stream == "s")
    #expect(try RedisURL("unix://:secret@/run/redis.sock").password == "secret")
  }

  @Test(arguments: [
    "", "host", "redis:/host", "http://host", "redis://", "redis://:secret@", "redis://host:0", "redis://host:65536",
    "redis://host:+1", "redis://host:", "redis://::1", "redis://[::1", "redis://host/secret", "redis://host/-1",
    "redis://secret@host", "redis://:secret%2@host", "redis://:secret%ff@host", "redis://:secret%00@host",
    "redis://:se?secret@host", "redis://host?db=1", "redis://host?stream=", "redis://host?stream=a%20b",
    "redis://host?stream={a}", "redis://host?stream=a&stream=b", "redis://host?secret=1", "unix://run/redis.sock",
    "unix:///", "redis://host?stream=secret%0a",
  ])
  func invalidAddressIsRefusedWithoutRepeatingIt(_ text: String) throws {
    let refusal = try #require(throws: Failure.self) { try RedisURL(text) }
    #expect(!refusal.description.contains("secret"))
    // The argument parser prints the values that it refuses, so it accepts this one and a later check refuses it.
    #expect(RedisURL(argument: text).fault == refusal)
    let usage = #expect(throws: (any Error).self) { try QueueAddress(argument: text).validate("--queue") }
    #expect(usage.map { "\($0)".contains("--queue: the queue's address: ") && !"\($0)".contains("secret") } == true)
    #expect(throws: refusal) { try RedisConnection(RedisURL(argument: text)) }
  }

  @Test func encryptedAddressIsRefusedWithAdviceToUseAProxy() throws {
    let refusal = #expect(throws: Failure.self) { try RedisURL("rediss://:secret@host") }
    #expect(refusal?.description.contains("TLS proxy on this machine") == true)
  }
}
