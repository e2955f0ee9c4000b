import Foundation
import TestSupport
import Testing

/// Workers and the receiver of their events are killed at random. No batch is retired before its event is delivered.
@Suite struct EventStormTests {
  private let spool: TestSpool
  private let receiver: ReceiverServer

  init() throws { (spool, receiver) = (try TestSpool(), try ReceiverServer()) }

  /// Adds a batch; each nineteenth cannot be encoded.
  private func add(_ number: Int) throws {
    if number % 19 == 7 {
      try spool.add(file: "bad@\(number)", Array("no batch: \(number)".utf8))
    } else {
      try spool.addSmall("s\(number % 20)@\(number)", startMs: 1_767_859_512_340 + Int64(number / 20) * 2_000)
    }
  }

  private func worker() throws -> RunningWorker {
    try spool.start("--keep-batches", "--notify", receiver.url, "--notify-pending", "40", "--jobs", "2")
  }

  /// Answers for a while: the receiver is busy, hangs, or works. Each answer is late, so that workers die before it.
  private func answers() -> [ReceiverServer.Answer] {
    let answers: [ReceiverServer.Answer] = [
      .init(), .init(status: 200, body: "taken"), .init(status: 503), .init(status: 429, headers: ["Retry-After": "1"]),
      .init(hold: true),
    ]
    return answers.map { answer in
      var late = answer
      (late.delayS, late.watch) = (0.3, [spool.path + "/done", spool.path + "/quarantine"])
      return late
    }
  }

  private func retired() throws -> Set<String> {
    Set(try spool.names("done") + spool.names("quarantine").filter { !$0.hasSuffix(".reason.json") })
  }

  /// Checks that each retired batch was notified. Read the log after the directories.
  private func expectNotified(_ retired: Set<String>) throws {
    let notified = Set(try receiver.events().map(\.batch))
    #expect(retired.subtracting(notified).sorted() == [])
  }

  @Test func eachBatchIsNotifiedBeforeItIsRetired() throws {
    let (count, kills) = (Extent.of(60, full: 2_000), Extent.of(12, full: 300))
    var added = 0
    receiver.answer(answers()[0])
    var workers = try [worker(), worker()]
    var killed = (workers: 0, receivers: 0)
    while added < count || killed.workers + killed.receivers < kills {
      for number in added..<min(count, added + Int.random(in: 0...2 * (count / kills))) {
        try add(number)
        added += 1
      }
      usleep(UInt32.random(in: 0..<200_000))
      switch Int.random(in: 0..<8) {
      case 0..<4:
        let index = Int.random(in: 0..<2)
        workers[index].signal(SIGKILL)
        #expect(try workers[index].wait() == -SIGKILL)
        workers[index] = try worker()
        killed.workers += 1
      case 4:
        receiver.kill()
        usleep(UInt32.random(in: 0..<200_000))
        try receiver.restart()
        killed.receivers += 1
      case 5: receiver.answer(answers().randomElement() ?? .init())
      default: receiver.answer(answers()[0])
      }
      try expectNotified(retired())
    }
    receiver.answer(answers()[0])
    try spool.waitUntil("all batches are retired") { try retired().count == count }
    for worker in workers {
      worker.signal(SIGKILL)
      #expect(try worker.wait() == -SIGKILL)
    }
    // The next worker removes the leftovers of the dead.
    #expect(try spool.drain("--keep-batches", "--notify", receiver.url).status == 0)
    #expect(try spool.isAtRest && spool.names("notifications").isEmpty)
    try expectNotified(retired())
    let attempts = try receiver.log()
    // No event came for the first time from a batch that was retired before.
    var seen: Set<String> = []
    for request in attempts where request.status != 0 {
      let event = try request.event
      if !seen.contains(event.batch) { #expect(!request.isRetired, "\(event.batch)") }
      if (200...299).contains(request.status) { seen.insert(event.batch) }
    }
    // All events of a batch with the same outcome have one key.
    let quarantined = Set(try spool.names("quarantine"))
    var keys: [String: Set<String>] = [:]
    for event in try attempts.map({ try $0.event }) {
      let isQuarantined = event.event == "batch.quarantined"
      keys["\(isQuarantined) \(event.batch)", default: []].insert(event.key)
      if isQuarantined { #expect(quarantined.contains(event.batch), "\(event.batch)") }
    }
    #expect(keys.values.allSatisfy { $0.count == 1 })
    let accepted = try receiver.events()
    for name in try spool.names("done") {
      #expect(accepted.contains { $0.batch == name && $0.event != "batch.quarantined" }, "\(name)")
    }
    // Each published segment is of a batch that was notified.
    let notified = Set(accepted.map(\.batch))
    for session in try names(in: spool.output) where !session.hasPrefix(".") {
      for manifest in try PublishedSession(spool.output + "/" + session).manifests {
        #expect(notified.contains(manifest.batch))
      }
    }
    let repeated = accepted.count - Set(accepted.map(\.key)).count
    print(
      "event storm: \(count) batches, \(killed.workers) workers and \(killed.receivers) receivers killed,",
      "\(attempts.count { $0.status != 0 }) answers, \(accepted.count) accepted, \(repeated) repeated,",
      "\(quarantined.count { !$0.hasSuffix(".reason.json") }) quarantined")
  }

  /// A worker is killed before each call that changes a file or sends bytes; the next one finishes the work.
  @Test(arguments: [204, 422]) func killBeforeAnyCallLosesNoEvent(status: Int) throws {
    receiver.answer(.init(status: status, watch: [spool.path + "/done", spool.path + "/quarantine"]))
    var kills = 0
    for call in ["mkdir", "pwrite64", "fsync", "link", "rename", "renameat2", "unlink", "rmdir", "sendto"] {
      // strace counts the calls of each thread.
      var number = 1
      while try !isWhole(afterKillBefore: number, call, status) {
        kills += 1
        number += Extent.of(Int.random(in: 1...3), full: 1)
      }
    }
    #expect(kills > 8)
    print("events: \(kills) workers killed before a call, answers \(status)")
  }

  /// Runs a worker that is killed before a call, and then the next one. Returns whether the first one did not get that far.
  private func isWhole(afterKillBefore number: Int, _ call: String, _ status: Int) throws -> Bool {
    let words = ["run", "--spool", spool.path, "--drain", "--keep-batches", "--jobs", "1", "--notify", receiver.url]
    let (good, bad) = ("\(call)\(number)@1", "bad-\(call)\(number)")
    try spool.addSmall(good, startMs: 1_767_859_512_340)
    try spool.add(file: bad, Array(bad.utf8))
    let trace = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)"]
    let fault = ["-e", "inject=\(call):signal=SIGKILL:when=\(number)", EncoderWorker.path]
    let first = try Tool.run("strace", trace + fault + words)
    let rest = try Tool.run(EncoderWorker.path, words)
    #expect([0, 65].contains(rest.status), "\(call) \(number): \(rest.errors)")
    #expect(try spool.isAtRest, "\(call) \(number)")
    let answered = try receiver.log().filter { $0.status != 0 }
    for name in [good, bad] {
      let own = try answered.filter { try $0.event.batch == name }
      #expect(own.first?.isRetired == false, "\(call) \(number): \(name)")
      #expect(try Set(own.map { try $0.event.key }).count == 1, "\(call) \(number): \(name)")
      let kept = try spool.names("notifications")
      let isKept = try own.first.map { try kept.contains($0.event.key + ".json") }
      #expect(isKept == (status == 422), "\(call) \(number): \(name)")
    }
    // A reason without its batch, from before the kill, keeps its name.
    let retired = try retired()
    #expect(retired.contains(good) && !retired.isDisjoint(with: [bad, bad + ".2"]), "\(call) \(number)")
    return first.status == 65
  }
}
