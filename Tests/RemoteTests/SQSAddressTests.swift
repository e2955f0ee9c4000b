import FileSystem
import Testing

@testable import Remote

@Suite struct SQSAddressTests {
  @Test func nameAloneIsAQueueOfTheOwnAccount() throws {
    let address = try SQSAddress("sqs://replay-batches_1")
    #expect(address.name == "replay-batches_1" && address.account == nil && address.url == nil && !address.isFIFO)
    #expect(address.description == "sqs://replay-batches_1")
    #expect(try SQSAddress("SQS://replay.fifo").isFIFO)
  }

  @Test func queueOfAnotherAccountIsNamedWithIt() throws {
    let address = try SQSAddress("sqs://123456789012/replay")
    #expect(address.name == "replay" && address.account == "123456789012" && address.url == nil)
    #expect(address.description == "sqs://123456789012/replay")
  }

  @Test(arguments: [
    ("https://sqs.eu-west-1.amazonaws.com/123456789012/replay", "eu-west-1"),
    ("https://sqs-fips.us-east-1.amazonaws.com/123456789012/replay.fifo", "us-east-1"),
    ("https://sqs.cn-north-1.amazonaws.com.cn/123456789012/replay", "cn-north-1"),
    ("https://sqs.eu-west-1.api.aws/123456789012/replay", "eu-west-1"),
    ("http://127.0.0.1:9324/000000000000/replay", nil), ("https://queue.example/base/000000000000/replay", nil),
    ("https://sqs.eu-west-1.amazonaws.com.example/123456789012/replay", nil),
  ])
  func addressOfAQueueNamesItsServerAndRegion(text: String, region: String?) throws {
    let address = try SQSAddress(text)
    #expect(address.url == text && address.description == text && address.region == region)
    #expect(address.name.hasPrefix("replay") && address.endpoint?.path == "")
    #expect(text.contains("://\(address.endpoint?.host ?? "-")/"))
  }

  @Test(arguments: [
    "sqs:", "sqs://", "sqs:///replay", "sqs://a/b/c", "sqs://12345678901/replay", "sqs://12345678901x/replay",
    "sqs://replay/", "sqs://re.play", "sqs://.fifo", "sqs://replay?region=secret", "sqs://secret@replay",
    "sqs://key:secret@123456789012/replay", "sqs://" + String(repeating: "x", count: 81), "https://sqs.example",
    "https://sqs.example/", "https://user:secret@sqs.example/1/replay", "https://sqs.example/1/replay?secret=1",
    "https://sqs.example/1/replay#secret", "https://sqs.example/1/re%20play", "https:///1/replay",
    "http://sqs.eu-west-1.amazonaws.com/123456789012/replay", "ftp://sqs.example/1/replay",
  ])
  func invalidAddressIsRefusedWithoutRepeatingIt(text: String) throws {
    let refusal = try #require(throws: Failure.self) { try SQSAddress(text) }
    #expect(!refusal.description.contains("secret"))
    let address = QueueAddress(argument: text)
    #expect(address.fault != nil && address.kind == nil && !address.description.contains("secret"))
  }

  @Test func addressesOfBothKindsAreTold() throws {
    guard case .redis? = QueueAddress(argument: "redis://:secret@queue").kind,
      case .redis? = QueueAddress(argument: "unix:///run/redis.sock").kind,
      case .sqs? = QueueAddress(argument: "sqs://replay").kind,
      case .sqs? = QueueAddress(argument: "https://sqs.example/1/replay").kind
    else { return #expect(Bool(false), "another kind") }
    #expect(QueueAddress(argument: "redis://:secret@queue").description == "redis://queue:6379")
    let fault = try #require(QueueAddress(argument: "kafka://queue").fault)
    #expect(fault.description.contains("redis://") && fault.description.contains("sqs://"))
  }
}
