// Notices that a store has stopped honouring the conditions of writes: a proxy was put before it, or its software was changed. Then a
// worker overwrites what another one has published, and each write seems to succeed.
//
// Two things tell it. A head that is read has to list what this process has published in the session before the request: that costs no
// request. And now and then two writes are tried that have to be refused, whatever other workers do.

import FileSystem
import FrameBatches
import Synchronization

/// The store does not honour the conditions of writes. No retry mends it, and batches may be missing in sessions.
package struct ConditionsIgnored: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .environment }
  /// The object that shows it.
  package let object: String
  package let cause: String

  package var description: String {
    "\(object): \(cause): the store ignores the conditions of writes (If-None-Match, If-Match), and sessions may lack "
      + "batches; mend the store, check it with config check, and run verify --store"
  }
}

/// Watches the conditional writes of one process to one store; for several threads.
final class ConditionWatch: Sendable {
  /// The last segments that this process has published in a session.
  struct Known {
    /// See ``ObjectSession/Head``: a session that was deleted begins anew.
    let generation: String?
    fileprivate(set) var starts: [Int64]
  }

  /// An object that is there once and for all. It has the prefix of the heads, whose conditions matter.
  static let key = "index/.conditions"
  private static let body = ObjectBody.bytes(Array("Workers test conditional writes with this object.\n".utf8))
  /// The tag of no object.
  private static let noTag = ObjectTag("\"00000000000000000000000000000000\"")
  /// Writes of that object that may succeed in a row: others may remove it.
  private static let creations = 3

  /// Maximum number of sessions, and of segments in each, that are known.
  private static let (maximumSessions, maximumSegments) = (512, 64)
  /// Milliseconds from one trial to the next, while there are publications.
  static let everyMs = 60_000

  private let objects: any ObjectClient
  /// The store's name in messages.
  private let name: String
  private let clock: @Sendable () -> Int
  private let nextMs: Mutex<Int>
  private let sessions = Mutex(LRUCache<SessionID, Known>(limit: maximumSessions))
  private let fault = Mutex<ConditionsIgnored?>(nil)

  /// - Parameters:
  ///   - name: the store's name in messages.
  ///   - clock: a monotonic clock, in milliseconds.
  init(_ objects: any ObjectClient, name: String, clock: @escaping @Sendable () -> Int) {
    (self.objects, self.name, self.clock) = (objects, name, clock)
    nextMs = Mutex(clock() + Self.everyMs)
  }

  /// Returns what this process has published in a session. Ask before the head is read: a publication of another thread may come meanwhile.
  ///
  /// - Throws: ``ConditionsIgnored`` if that was noticed before.
  func known(of id: SessionID) throws(ConditionsIgnored) -> Known? {
    if let fault = fault.withLock({ $0 }) { throw fault }
    return sessions.withLock { $0.value(of: id) }
  }

  /// Notes a publication of this process.
  func note(_ entries: [SessionEntry], in id: SessionID, generation: String?) {
    sessions.withLock { sessions in
      var known = sessions.value(of: id) ?? Known(generation: generation, starts: [])
      if known.generation != generation { known = Known(generation: generation, starts: []) }
      known.starts = (known.starts + entries.map(\.startMs)).suffix(Self.maximumSegments)
      sessions.insert(known, for: id)
    }
  }

  /// Forgets a session without a head: somebody has removed its objects by hand.
  func forget(_ id: SessionID) { sessions.withLock { $0.removeAll { $0 == id } } }

  /// Notes that the store ignores conditions.
  func report(_ object: String, _ cause: String) -> ConditionsIgnored {
    let ignored = ConditionsIgnored(object: name + object, cause: cause)
    fault.withLock { $0 = $0 ?? ignored }
    return ignored
  }

  /// Tries writes that have to be refused, if the last trial was some time ago. Call it before a publication.
  ///
  /// - Throws: ``ConditionsIgnored``; an error of the store.
  func tryWrites() throws {
    if let fault = fault.withLock({ $0 }) { throw fault }
    let nowMs = clock()
    let isDue = nextMs.withLock { next in
      guard nowMs >= next else { return false }
      next = nowMs + Self.everyMs
      return true
    }
    guard isDue else { return }
    do {
      // A write whose answer was lost is refused at its second try, too.
      for _ in 0..<Self.creations {
        guard try objects.put(Self.key, Self.body, .text, when: .absent) != nil else {
          guard try objects.put(Self.key, Self.body, .text, when: .matching(Self.noTag)) == nil else {
            throw report(Self.key, "a write for another tag has replaced it")
          }
          return
        }
      }
      throw report(Self.key, "\(Self.creations) writes have created it")
    } catch let error where !(error is ConditionsIgnored) {
      nextMs.withLock { $0 = nowMs }
      throw error
    }
  }
}

extension ConditionWatch.Known {
  /// Returns the first segment of this process that a head has to list, and lacks; nil if there is none.
  func lost(in published: ObjectSession.Published, generation: String?) -> Int64? {
    guard generation == self.generation, published.tag != nil, let first = published.index.entries.first else {
      return nil
    }
    let listed = Set(published.index.entries.map(\.startMs))
    // Earlier ones are in pages, or the beginning of the session was removed.
    return starts.first { $0 > first.startMs && !listed.contains($0) }
  }
}
