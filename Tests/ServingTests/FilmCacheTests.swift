import FileSystem
import Foundation
import FrameBatches
import Synchronization
import TestSupport
import Testing

@testable import Serving

/// Films that are made for clients of `serve`, without a server.
@Suite struct FilmCacheTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func file(bytes: Int = 10) throws -> OpenFile {
    let file = try OutputFile(unnamedIn: scratch.path)
    try file.write([UInt8](repeating: 7, count: bytes), at: 0)
    return try #require(try file.forReading())
  }

  private func request(
    _ key: String, of session: String = "walk", bytes: Int = 10, isAbandoned: @escaping () -> Bool = { false }
  ) throws -> FilmCache.Request {
    FilmCache.Request(
      key: key, session: try #require(SessionID(session)), bytes: bytes, isAbandoned: isAbandoned)
  }

  private func film(_ key: String, of session: String = "walk", from cache: FilmCache, bytes: Int = 10) throws
    -> OpenFile
  {
    try cache.film(request(key, of: session, bytes: bytes)) { _ in try file(bytes: bytes) }
  }

  private func cache(_ limits: FilmCache.Limits = FilmCache.Limits(), freeBytes: Int = .max) -> FilmCache {
    FilmCache(limits) { freeBytes }
  }

  private func isBusy(_ body: () throws -> OpenFile) -> Bool {
    do {
      _ = try body()
      return false
    } catch {
      return error is FilmsBusy
    }
  }

  /// Starts a film that is being made until the flag is set.
  private func start(_ key: String, in cache: FilmCache, until release: Flag, on threads: ThreadGroup) throws {
    let begun = Flag()
    let wanted = SendableBox(try request(key))
    try threads.start {
      _ = try? cache.film(wanted.value) { _ in
        begun.set()
        _ = release.wait()
        return try file()
      }
    }
    #expect(begun.wait(), "\(key)")
  }

  private struct SendableBox<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
  }

  // MARK: - Making

  @Test func filmIsMadeOnceForAllItsClients() throws {
    let (cache, threads) = (cache(), ThreadGroup())
    let made = Mutex(0)
    let got = Mutex<[Int32]>([])
    for _ in 0..<8 {
      let wanted = SendableBox(try request("a"))
      try threads.start {
        let film = try? cache.film(wanted.value) { _ in
          made.withLock { $0 += 1 }
          usleep(20_000)
          return try file()
        }
        got.withLock { $0.append(film?.descriptor ?? -1) }
      }
    }
    threads.join()
    #expect(made.withLock { $0 } == 1)
    #expect(got.withLock { $0.count == 8 && Set($0).count == 1 && $0[0] >= 0 })
  }

  @Test func filmOfAnotherKeyIsMadeMeanwhile() throws {
    let (cache, threads, release) = (cache(), ThreadGroup(), Flag())
    try start("a", in: cache, until: release, on: threads)
    #expect(try film("b", from: cache).size == 10)
    release.set()
    threads.join()
  }

  @Test func abandonedRequestsMakeNoFilm() throws {
    var limits = FilmCache.Limits()
    (limits.running, limits.waiting) = (1, 4)
    let (cache, threads, release) = (cache(limits), ThreadGroup(), Flag())
    try start("a", in: cache, until: release, on: threads)
    let made = Mutex(0)
    let left = Flag()
    // Four clients wait, then leave; a hundred have left before.
    let waiting = Mutex(0)
    let waiters = ThreadGroup()
    for number in 0..<4 {
      let wanted = SendableBox(
        try request("waiting\(number)") {
          waiting.withLock { $0 += 1 }
          return left.isSet
        })
      try waiters.start {
        _ = try? cache.film(wanted.value) { _ in
          made.withLock { $0 += 1 }
          return try file()
        }
      }
    }
    for number in 0..<100 {
      #expect(throws: ClientGone.self) {
        try cache.film(try request("gone\(number)") { true }) { _ in
          made.withLock { $0 += 1 }
          return try file()
        }
      }
    }
    left.set()
    waiters.join()
    #expect(waiting.withLock { $0 } > 0)
    release.set()
    #expect(try film("next", from: cache).size == 10)
    threads.join()
    #expect(made.withLock { $0 } == 0)
  }

  @Test func workEndsWithItsLastClient() throws {
    let (cache, threads) = (cache(), ThreadGroup())
    let (begun, firstLeft, secondLeft) = (Flag(), Flag(), Flag())
    let (first, second) = (
      SendableBox(try request("a") { firstLeft.isSet }), SendableBox(try request("a") { secondLeft.isSet })
    )
    let isGone = Mutex([false, false])
    let hasGoneOn = Flag()
    try threads.start {
      do {
        _ = try cache.film(first.value) { requireClient in
          begun.set()
          // The second client still waits when the first one has left.
          _ = firstLeft.wait()
          while true {
            try requireClient()
            hasGoneOn.set()
            usleep(1_000)
          }
        }
      } catch { isGone.withLock { $0[0] = error is ClientGone } }
    }
    #expect(begun.wait())
    let joined = Flag()
    let watched = SendableBox(
      try request("a") {
        joined.set()
        return second.value.isAbandoned()
      })
    try threads.start {
      do {
        _ = try cache.film(watched.value) { _ in try file() }
      } catch { isGone.withLock { $0[1] = error is ClientGone } }
    }
    #expect(joined.wait())
    // The second client has joined when it checks its connection again.
    usleep(300_000)
    firstLeft.set()
    #expect(hasGoneOn.wait())
    secondLeft.set()
    threads.join()
    #expect(isGone.withLock { $0 } == [true, true])
    // A later request makes the film anew.
    #expect(try film("a", from: cache).size == 10)
  }

  @Test func requestBeyondTheQueueIsRefused() throws {
    var limits = FilmCache.Limits()
    (limits.running, limits.waiting) = (1, 2)
    let (cache, threads, release) = (cache(limits), ThreadGroup(), Flag())
    try start("a", in: cache, until: release, on: threads)
    for key in ["b", "c"] {
      let checks = Mutex(0)
      let waits = Flag()
      let wanted = SendableBox(
        try request(key) {
          // The request is in the queue when it checks for the second time.
          checks.withLock { $0 += 1 }
          if checks.withLock({ $0 }) > 1 { waits.set() }
          return false
        })
      try threads.start { _ = try? cache.film(wanted.value) { _ in try file() } }
      #expect(waits.wait())
    }
    #expect(isBusy { try film("d", from: cache) })
    release.set()
    threads.join()
    #expect(try film("d", from: cache).size == 10)
  }

  @Test func failureReachesTheClientAndIsNotCached() throws {
    let cache = cache()
    #expect(throws: DiskError.self) {
      try cache.film(try request("a")) { _ in throw DiskError("write", "film", code: ENOSPC) }
    }
    #expect(try film("a", from: cache).size == 10)
  }

  // MARK: - Limits

  @Test func filmsThatAreReadCountTowardsTheNumber() throws {
    var limits = FilmCache.Limits()
    limits.films = 2
    let cache = cache(limits)
    var read = [try film("a", from: cache), try film("b", from: cache)]
    #expect(isBusy { try film("c", from: cache) })
    // A film that is there is answered all the same.
    #expect(try film("a", from: cache).descriptor == read[0].descriptor)
    read.removeLast()
    #expect(try film("c", of: "other", from: cache).size == 10)
    #expect(try film("b", from: cache).size == 10)
    #expect(cache.sessions.map(\.description) == ["walk"])
    #expect(try film("a", from: cache).descriptor == read[0].descriptor)
  }

  @Test func filmsThatAreReadCountTowardsTheBytes() throws {
    var limits = FilmCache.Limits()
    limits.bytes = 100
    let cache = cache(limits)
    // A film alone may be larger.
    #expect(try film("large", from: cache, bytes: 1_000).size == 1_000)
    let read = try film("a", from: cache, bytes: 60)
    #expect(isBusy { try film("b", from: cache, bytes: 50) })
    #expect(try film("c", from: cache, bytes: 40).size == 40)
    #expect(read.size == 60)
    // The least recently used one that nobody reads has to go.
    #expect(try film("d", from: cache, bytes: 30).size == 30)
  }

  @Test func filmIsNotBegunWithoutRoomOnTheDisk() throws {
    let free = Mutex(100)
    let cache = FilmCache { free.withLock { $0 } }
    #expect(isBusy { try film("a", from: cache, bytes: 101) })
    let read = try film("b", from: cache, bytes: 100)
    free.withLock { $0 = 20 }
    #expect(isBusy { try film("c", from: cache, bytes: 30) })
    #expect(read.size == 100)
  }

  // MARK: - Removed sessions

  @Test func filmOfADeletedSessionLosesItsBytesWhileItIsRead() throws {
    let cache = cache()
    let (gone, other) = (try film("a", of: "gone", from: cache), try film("b", of: "other", from: cache))
    let session = try #require(SessionID("gone"))
    cache.remove(deleted: [session], missing: [])
    var status = stat()
    #expect(fstat(gone.descriptor, &status) == 0 && status.st_size == 0)
    #expect(fstat(other.descriptor, &status) == 0 && status.st_size == 10)
    #expect(cache.sessions.map(\.description) == ["other"])
  }

  @Test func filmOfAPrunedSessionStaysUntilItIsRead() throws {
    let cache = cache()
    let session = try #require(SessionID("pruned"))
    var read: OpenFile? = try film("a", of: "pruned", from: cache)
    cache.remove(deleted: [], missing: [session])
    var status = stat()
    #expect(fstat(try #require(read).descriptor, &status) == 0 && status.st_size == 10)
    #expect(cache.sessions == [session])
    read = nil
    cache.remove(deleted: [], missing: [session])
    #expect(cache.sessions.isEmpty)
  }
}
