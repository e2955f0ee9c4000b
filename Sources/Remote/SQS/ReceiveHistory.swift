/// The receives of this worker. They tell more about an empty queue than the counts of SQS, which lag.
struct ReceiveHistory: Sendable {
  /// Receives without a message after which a drain takes the queue for empty.
  static let emptyReceives = 3
  /// Milliseconds for which the counts are not asked again.
  private static let countedMs = 1_000

  /// Receives that are offered at once.
  private static let maximumOffered = 64

  private var underWay = 0
  /// Receives that are offered, and have not begun; and whether a receive has found nothing since.
  private var (offered, isOfferVoid) = (0, false)
  private var emptyInARow = 0
  /// The end of the last receive.
  private var endedMs: Int
  private var counts: (atMs: Int, waiting: Int, delayed: Int)?

  init(atMs now: Int) { endedMs = now }

  mutating func begin() { underWay += 1 }

  /// - Parameter hasMessage: nil if the receive failed.
  mutating func end(hasMessage: Bool?, atMs now: Int) {
    underWay -= 1
    endedMs = now
    guard let hasMessage else { return }
    emptyInARow = hasMessage ? 0 : emptyInARow + 1
    if !hasMessage { isOfferVoid = true }
    // So the counts need not be asked after each message.
    if let known = counts { counts = (known.atMs, hasMessage ? max(0, known.waiting - 1) : 0, known.delayed) }
  }

  mutating func note(waiting: Int, delayed: Int = 0, atMs now: Int) { counts = (now, waiting, delayed) }

  /// More messages wait.
  mutating func forgetCounts() { (counts, emptyInARow) = (nil, 0) }

  /// The number of messages that waited less than a second ago, without those received since; nil if it was not asked.
  func waiting(atMs now: Int) -> Int? { counts.flatMap { now - $0.atMs < Self.countedMs ? $0.waiting : nil } }

  /// Returns the number of receives that a drain tries after several ones without a message.
  ///
  /// - Parameter isFIFO: then the messages behind a batch that has failed count as waiting.
  func drainable(isFIFO: Bool) -> Int {
    let waiting = isFIFO ? 0 : counts?.waiting ?? 0
    // A message that is delayed comes later.
    return waiting == 0 && underWay == 0 && (counts?.delayed ?? 0) > 0 ? 1 : waiting
  }

  /// Whether the last receives found nothing.
  var foundNothing: Bool { emptyInARow >= Self.emptyReceives }

  /// Offers receives to the threads of the worker.
  ///
  /// - Returns: their number.
  mutating func offer(_ count: Int) -> Int {
    (offered, isOfferVoid) = (min(count, Self.maximumOffered), false)
    return offered
  }

  /// Takes up an offer.
  ///
  /// - Returns: false if a receive has found nothing since it was made. The counts were too high.
  mutating func take() -> Bool {
    guard offered > 0 else { return true }
    offered -= 1
    return !isOfferVoid
  }

  /// Returns the number of receives that are worth a try even if the counts say that no message waits, and whether the counts need
  /// not be asked before: an idle worker has one receive under way at all times.
  ///
  /// - Parameters:
  ///   - drains: whether the worker ends when the queue is empty.
  ///   - afterMs: milliseconds after a receive for which the counts are believed.
  func probes(drains: Bool, afterMs: Int, atMs now: Int) -> (count: Int, replacesCounts: Bool) {
    guard now - endedMs >= afterMs, !(drains && foundNothing) else { return (0, false) }
    return (underWay > 0 ? 0 : 1, emptyInARow > 0)
  }
}
