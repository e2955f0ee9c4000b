import Testing

@testable import Remote

/// When a worker tries to receive, although the counts of SQS say that nothing waits.
@Suite struct ReceiveHistoryTests {
  private func probes(_ history: ReceiveHistory, drains: Bool = false, afterMs: Int = 0, atMs now: Int = 100) -> Int {
    history.probes(drains: drains, afterMs: afterMs, atMs: now).count
  }

  @Test func idleWorkerHasOneReceiveUnderWay() {
    var history = ReceiveHistory(atMs: 0)
    #expect(probes(history) == 1)
    history.begin()
    #expect(probes(history) == 0)
    history.end(hasMessage: false, atMs: 50)
    #expect(history.probes(drains: false, afterMs: 0, atMs: 100) == (1, true))
    history.begin()
    #expect(history.probes(drains: false, afterMs: 0, atMs: 100) == (0, true))
    history.end(hasMessage: true, atMs: 60)
    // The counts tell how many more are worth a try.
    #expect(history.probes(drains: false, afterMs: 0, atMs: 100) == (1, false))
  }

  @Test func drainEndsAfterSeveralEmptyReceives() {
    var history = ReceiveHistory(atMs: 0)
    for number in 1...ReceiveHistory.emptyReceives {
      #expect(probes(history, drains: true) == 1, "\(number)")
      history.begin()
      history.end(hasMessage: false, atMs: number)
    }
    #expect(history.probes(drains: true, afterMs: 0, atMs: 100) == (0, false) && probes(history) == 1)
    // A failure tells nothing, and a message starts again.
    history.begin()
    history.end(hasMessage: nil, atMs: 10)
    #expect(probes(history, drains: true) == 0)
    history.begin()
    history.end(hasMessage: true, atMs: 11)
    #expect(probes(history, drains: true) == 1)
  }

  @Test func countsAreUsedForASecond() {
    var history = ReceiveHistory(atMs: 0)
    #expect(history.waiting(atMs: 0) == nil)
    history.note(waiting: 7, atMs: 10)
    #expect(history.waiting(atMs: 1_009) == 7 && history.waiting(atMs: 1_010) == nil)
    history.forgetCounts()
    #expect(history.waiting(atMs: 11) == nil)
    history.note(waiting: 7, atMs: 10)
    for (hasMessage, left) in [(true, 6), (nil, 6), (true, 5), (false, 0), (true, 0)] as [(Bool?, Int)] {
      history.begin()
      history.end(hasMessage: hasMessage, atMs: 20)
      #expect(history.waiting(atMs: 21) == left)
    }
    #expect(probes(history, afterMs: 100) == 0 && probes(history, afterMs: 80) == 1)
  }

  @Test func receiveWithoutAMessageVoidsTheOthersOfItsOffer() {
    var history = ReceiveHistory(atMs: 0)
    let offered = history.offer(1_000)
    var taken = [history.take()]
    history.begin()
    history.end(hasMessage: true, atMs: 1)
    taken.append(history.take())
    history.begin()
    history.end(hasMessage: false, atMs: 2)
    for _ in 2..<64 { taken.append(history.take()) }
    #expect(offered == 64 && taken == [true, true] + Array(repeating: false, count: 62))
    // Without an offer, the caller decides. The next offer is a new one.
    let (afterwards, next) = (history.take(), history.offer(1))
    let isTaken = history.take()
    #expect(afterwards && next == 1 && isTaken)
  }

  @Test func drainGoesOnWhileMessagesAreDelayed() {
    var history = ReceiveHistory(atMs: 0)
    history.note(waiting: 5, delayed: 1, atMs: 0)
    #expect(history.drainable(isFIFO: false) == 5 && history.drainable(isFIFO: true) == 1)
    history.begin()
    #expect(history.drainable(isFIFO: true) == 0)
    history.end(hasMessage: false, atMs: 1)
    #expect(history.drainable(isFIFO: false) == 1)
    history.note(waiting: 5, atMs: 2)
    #expect(history.drainable(isFIFO: false) == 5 && history.drainable(isFIFO: true) == 0)
  }
}
