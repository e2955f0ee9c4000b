import FileSystem
import Synchronization
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// Renewals of leases that a queue refuses.
@Suite struct LeaseRenewalTests {
  private let server: StoreServer
  private let objects = MemoryObjects()
  private let clock = TestClock()

  init() throws { server = try StoreServer("hostile_sqs.py") }

  private func client(_ kind: String) throws -> SQSClient {
    let environment = server.environment
    return try SQSClient(
      SQSAddress("\(server.endpoint)/000000000000/\(kind)"), AWSSettings(environment: { environment[$0] }),
      timeoutS: 600, pauseMs: 1)
  }

  private func worker(_ kind: String, warn: @escaping @Sendable (String) -> Void = { _ in }) throws -> SQSQueue {
    try SQSQueue(
      client(kind), objects: objects, place: ObjectPlace(bucket: "replay", prefix: ""), role: .worker(drains: false),
      lease: 3_600, waitS: 0, clock: { [clock] in clock.now }, warn: warn)
  }

  @Test func missingPermissionIsFoundAtTheStart() throws {
    let error = try #require(throws: SQSError.self) { try worker("forbidden") }
    #expect(error.status == 403 && error.advice == "allow sqs:ChangeMessageVisibility on the queue")
  }

  @Test func claimThatIsLostForFailedRenewalsIsNoAttempt() throws {
    let lines = Mutex<[String]>([])
    let worker = try worker("locked") { line in lines.withLock { $0.append(line) } }
    for _ in 0..<6 {
      let claim = try #require(try worker.next())
      #expect(claim.attempt == 1 && claim.failures == 0)
      clock.advance(seconds: 1_300)
      worker.renewal.run()
      #expect(worker.holds(claim.id))
      clock.advance(seconds: 2_400)
      #expect(!worker.holds(claim.id))
    }
    worker.renewal.run()
    let said = lines.withLock { $0 }
    #expect(said.count { $0.contains("cannot be renewed: ChangeMessageVisibilityBatch") } == 1)
    #expect(said.count { $0.contains("1 claims are lost") && $0.contains("AccessDeniedException") } == 6)
    #expect(said.count == 7)
  }

  @Test func claimThatNobodyTriedToRenewIsAnAttempt() throws {
    let worker = try worker("locked")
    _ = try #require(try worker.next())
    clock.advance(seconds: 3_601)
    // The server delivers the message again as long as it is asked.
    _ = try worker.next()
    #expect(try Set(worker.takeOver().map(\.attempt)) == [1])
  }

  @Test func failedRenewalDoesNotKeepOthersFromTheirs() throws {
    let held = HeldMessages(of: try SQSActions(client("renewing-1")), leaseS: 3_600, clock: { [clock] in clock.now })
    for number in 0..<25 {
      let receipt = SQSReceipt(id: "\(number)", handle: "\(number)", receiveCount: 1, traceParent: nil)
      _ = held.hold(receipt, sentAtMs: clock.now)
    }
    #expect(try !held.renewDue())
    clock.advance(seconds: 1_300)
    #expect(throws: SQSError.self) { try held.renewDue() }
    clock.advance(seconds: 1_000)
    // Only those whose renewal failed are due.
    #expect(try held.renewDue())
    #expect(try !held.renewDue())
    clock.advance(seconds: 1_400)
    #expect(held.count == 25)
  }

  @Test func handleThatIsOfNoUseAnyMoreDoesNoHarm() throws {
    let worker = try worker("lapsed")
    let claim = try #require(try worker.next())
    try worker.acknowledge(claim)
    #expect(!worker.holds(claim.id))
  }
}
