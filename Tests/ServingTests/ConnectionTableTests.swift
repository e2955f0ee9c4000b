import Testing

@testable import Serving

/// Which connection is closed when there are too many, and when a client takes its answers too slowly.
@Suite struct ConnectionTableTests {
  private let limits = ConnectionTable.Limits()

  private func connection(
    of network: UInt64, request: Int? = nil, answer: Int? = nil, sinceMs: Int = 0
  ) -> TrackedConnection {
    TrackedConnection(
      descriptor: -1, network: network, requestDeadlineMs: request, answerDeadlineMs: answer, sinceMs: sinceMs)
  }

  private func surplus(_ all: [TrackedConnection], most: Int = 0, mostWaiting: Int = 9) -> UInt? {
    var connections = ConnectionTable.Connections()
    for (index, connection) in all.enumerated() { connections.add(connection, as: UInt(index)) }
    return connections.surplus(at: 0, limits, most: most, mostWaiting: mostWaiting)
  }

  /// The connection of the network 2 has the earliest deadline of all, and stays.
  @Test func networkWithTheMostConnectionsLosesOne() {
    let one = (0..<3).map { connection(of: 1, request: 9_000 - $0) }
    #expect(surplus([connection(of: 2, request: 1)] + one) == 3)
  }

  @Test func unreadAnswersGoFirstThenThoseWithoutARequestThenTheLatest() {
    let late = connection(of: 1, answer: 28_000)
    let later = connection(of: 1, answer: 27_000)
    // This client took something less than a second ago.
    let reading = connection(of: 1, answer: 29_500)
    let waiting = connection(of: 1, request: 5_000)
    let working = (0..<2).map { connection(of: 1, sinceMs: $0) }
    #expect(surplus(working + [waiting, reading, late, later]) == 5)
    #expect(surplus(working + [waiting, reading, late]) == 4)
    #expect(surplus(working + [waiting, reading]) == 2)
    #expect(surplus(working) == 1)
    #expect(surplus([]) == nil)
  }

  @Test func connectionThatIsBeingClosedCountsNoMore() {
    var connections = ConnectionTable.Connections()
    for key: UInt in 0..<5 { connections.add(connection(of: key < 3 ? 1 : 2, request: Int(key)), as: key) }
    for key: UInt in [0, 1] { connections.change(key) { $0.isClosing = true } }
    #expect(connections.surplus(at: 0, limits, most: 3) == nil)
    #expect(connections.surplus(at: 0, limits, most: 2) == 3)
    for key: UInt in 0..<5 { connections.remove(key) }
    #expect(connections.surplus(at: 0, limits, most: -1) == nil)
  }

  @Test func tooManyWithoutARequestLoseOneOfThem() {
    let answers = (0..<3).map { connection(of: 1, answer: 1, sinceMs: $0) }
    let waiting = [connection(of: 2, request: 7_000), connection(of: 2, request: 6_000), connection(of: 1, request: 1)]
    #expect(surplus(answers + waiting, most: 6, mostWaiting: 3) == nil)
    #expect(surplus(answers + waiting, most: 6, mostWaiting: 2) == 4)
  }

  /// Each look is a second after the one before. The client has 30 seconds, and a second for each 4 096 bytes.
  @Test(
    arguments: [
      // Nothing is sent.
      ([(0, 10), (0, 20)], nil),
      ([(100, 10), (100, 10), (100, 10)], 30_000),
      ([(100, 10), (100, 2_058), (100, 2_058)], 30_500),
      // More than the least rate buys no time to wait.
      ([(100, 10), (100, 900_010), (100, 900_010)], 31_000),
      ([(100, 10), (0, 110), (100, 110)], 32_000),
    ] as [([(Int, UInt64)], Int?)])
  func answerHasADeadlineThatMovesWithItsBytes(looks: [(unread: Int, taken: UInt64)], deadlineMs: Int?) {
    var connection = connection(of: 1)
    for (second, look) in looks.enumerated() {
      connection.look(unread: look.unread, taken: look.taken, at: 1_000 * second, limits)
    }
    #expect(connection.answerDeadlineMs == deadlineMs)
  }
}
