import FileSystem
import FrameBatches
import Synchronization
import TestSupport
import Testing

@testable import Serving

/// Which film is made next. `FilmCacheTests` has the other promises of the cache.
@Suite struct FilmTurnsTests {
  private let scratch: ScratchDirectory
  private let cache: FilmCache

  init() throws {
    scratch = try ScratchDirectory()
    var limits = FilmCache.Limits()
    limits.waiting = 1
    cache = FilmCache(limits) { .max }
  }

  /// The flags of a film: its client waits, it is being made, it may end.
  private struct Turn: Sendable {
    let waits = Flag()
    let begun = Flag()
    let release = Flag()
  }

  private func film(_ key: String, isAnimation: Bool, _ turn: Turn) throws -> OpenFile {
    let checks = Mutex(0)
    let request = FilmCache.Request(
      key: key, session: try #require(SessionID("walk")), bytes: 10, isAnimation: isAnimation
    ) {
      // The request is in the queue when it checks for the second time.
      let count = checks.withLock { checks in
        checks += 1
        return checks
      }
      if count > 1 { turn.waits.set() }
      return false
    }
    return try cache.film(request) { _ in
      turn.begun.set()
      _ = turn.release.wait()
      let file = try OutputFile(unnamedIn: scratch.path)
      try file.write([7], at: 0)
      return try #require(try file.forReading())
    }
  }

  private func start(_ key: String, isAnimation: Bool, on threads: ThreadGroup) throws -> Turn {
    let turn = Turn()
    try threads.start { _ = try? film(key, isAnimation: isAnimation, turn) }
    return turn
  }

  /// Of two makers, one is left for films that are copied. Animated pictures that wait take no place of theirs.
  @Test func animatedPicturesAreMadeOneAtATime() throws {
    let threads = ThreadGroup()
    let first = try start("gif", isAnimation: true, on: threads)
    #expect(first.begun.wait())
    let second = try start("webp", isAnimation: true, on: threads)
    #expect(second.waits.wait())
    let third = Turn()
    third.release.set()
    #expect(throws: FilmsBusy.self) { try film("third", isAnimation: true, third) }
    #expect(try film("mp4", isAnimation: false, third).size == 1)
    #expect(!second.begun.isSet)
    first.release.set()
    #expect(second.begun.wait())
    second.release.set()
    threads.join()
  }

  @Test func copiedFilmsAreMadeTwoAtATime() throws {
    let threads = ThreadGroup()
    let turns = try ["a", "b"].map { try start($0, isAnimation: false, on: threads) }
    for turn in turns { #expect(turn.begun.wait()) }
    let animation = try start("gif", isAnimation: true, on: threads)
    #expect(animation.waits.wait() && !animation.begun.isSet)
    turns[0].release.set()
    #expect(animation.begun.wait())
    for turn in turns + [animation] { turn.release.set() }
    threads.join()
  }
}
