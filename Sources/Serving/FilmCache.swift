// Films for downloads, in files without names. A film is made once for all clients that wait for it. Few are made at a time, few
// others wait, and the work ends when the last client has gone. A film that a client still reads counts towards all limits, and
// is never evicted.

import FileSystem
import FrameBatches
import Glibc

/// Makes and keeps films. For any thread.
final class FilmCache: Sendable {
  struct Limits {
    /// Films that are kept or being made.
    var films = 8
    /// Their size together. A film that is larger is made if there is no other.
    var bytes = 4 << 30
    /// Films that are being made.
    var running = 2
    /// Animated pictures among these.
    var animations = 1
    /// Films that wait to be made, and as many animated pictures.
    var waiting = 8
  }

  /// A request for a film.
  struct Request {
    /// Identifies the session's version, the part and the speed.
    let key: String
    let session: SessionID
    /// The expected size.
    let bytes: Int
    /// Whether it is an animated picture, which may take minutes.
    var isAnimation = false
    /// Whether the client has closed its connection.
    let isAbandoned: () -> Bool
  }

  fileprivate struct Film {
    let key: String
    let session: SessionID
    /// More references than this one are clients that read the film.
    var file: OpenFile
  }

  /// A film that waits or is being made. Guarded by `state`.
  fileprivate final class Job {
    let key: String
    let bytes: Int
    let isAnimation: Bool
    /// Clients that wait.
    var clients = 1
    var isRunning = false
    var result: Result<OpenFile, any Error>?

    init(_ request: Request) {
      (key, bytes, isAnimation) = (request.key, max(1, request.bytes), request.isAnimation)
    }
  }

  fileprivate struct State {
    /// The most recently used film is the last one.
    var films: [Film] = []
    /// In the order of their first requests.
    var jobs: [Job] = []
  }

  private enum Step {
    case answer(Result<OpenFile, any Error>)
    case make(Job)
  }

  /// Milliseconds between checks of a client's connection.
  private static let checkMs = 200

  private let limits: Limits
  private let freeBytes: @Sendable () -> Int
  private let state = Monitor(State())

  /// - Parameter freeBytes: returns the bytes that films may take on their disk.
  init(_ limits: Limits = Limits(), freeBytes: @escaping @Sendable () -> Int) {
    (self.limits, self.freeBytes) = (limits, freeBytes)
  }

  /// Returns a film.
  ///
  /// - Parameter make: makes the film. It calls its argument now and then, which throws when no client waits any more.
  /// - Throws: ``FilmsBusy``, ``ClientGone``, an error of `make`.
  func film(_ request: Request, make: (_ requireClient: () throws -> Void) throws -> OpenFile) throws -> OpenFile {
    var own: Job?
    switch state.wait(until: { step(of: request, &own, &$0) }) {
    case .answer(let result): return try result.get()
    case .make(let job):
      let result = Result { try make { try requireClient(of: job, request) } }
      state.change { state in
        job.result = result
        state.jobs.removeAll { $0 === job }
        guard case .success(let file) = result else { return }
        state.films.append(Film(key: request.key, session: request.session, file: file))
        // The film may be larger than expected.
        while !hasRoom(for: 0, in: state), state.evict() {}
      }
      return try result.get()
    }
  }

  /// The sessions of all films.
  var sessions: Set<SessionID> { state.read { Set($0.films.map(\.session)) } }

  /// Removes films of sessions that are not in the output any more.
  ///
  /// - Parameters:
  ///   - deleted: their films lose their contents, also during a response, which ends.
  ///   - missing: a film that a client reads is removed when a later call finds it unread.
  func remove(deleted: Set<SessionID>, missing: Set<SessionID>) {
    state.change { state in
      for index in state.films.indices.reversed() {
        let film = state.films[index]
        if deleted.contains(film.session) {
          ftruncate(film.file.descriptor, 0)
          state.films.remove(at: index)
        }
      }
      while state.evict({ missing.contains($0) }) {}
    }
  }

  // MARK: - With the state locked

  /// - Parameter own: the job that the client of the request waits for.
  private func step(of request: Request, _ own: inout Job?, _ state: inout State) -> Monitor<State>.CheckResult<Step> {
    if let result = own?.result { return .found(.answer(result)) }
    if own == nil, let film = state.film(request.key) { return .found(.answer(.success(film))) }
    if request.isAbandoned() {
      own.map { state.leave($0) }
      return .found(.answer(.failure(ClientGone())))
    }
    if own == nil {
      if let job = state.jobs.first(where: { $0.key == request.key }) {
        job.clients += 1
        own = job
      } else {
        let waiting = state.jobs.count { !$0.isRunning && $0.isAnimation == request.isAnimation }
        guard waiting < limits.waiting else {
          return .found(.answer(.failure(FilmsBusy.queue(limits.waiting))))
        }
        let job = Job(request)
        state.jobs.append(job)
        own = job
      }
    }
    guard let job = own, state.next(limits) === job else { return .wait(ms: Self.checkMs) }
    while !hasRoom(for: job.bytes, in: state) {
      guard state.evict() else {
        let busy = FilmsBusy.room(bytes: job.bytes, limits.films, limits.bytes, freeBytes: freeBytes())
        // Other clients of the film get the same answer.
        job.result = .failure(busy)
        state.jobs.removeAll { $0 === job }
        return .found(.answer(.failure(busy)))
      }
    }
    job.isRunning = true
    return .found(.make(job))
  }

  /// - Parameter bytes: the size of a further film; 0 for none.
  private func hasRoom(for bytes: Int, in state: State) -> Bool {
    let running = state.jobs.filter(\.isRunning)
    let count = state.films.count + running.count
    let runningBytes = running.reduce(0) { $0 + $1.bytes }
    let held = state.films.reduce(runningBytes) { $0 + $1.file.size }
    if bytes == 0 { return count <= limits.films && (count <= 1 || held <= limits.bytes) }
    return count < limits.films && (count == 0 || held + bytes <= limits.bytes) && runningBytes + bytes <= freeBytes()
  }

  /// Throws if neither the client of a request nor another one waits for a film that is being made.
  private func requireClient(of job: Job, _ request: Request) throws {
    guard request.isAbandoned() else { return }
    let isWanted = state.wait { state in
      if job.clients > 1 { return .found(true) }
      // A later request begins anew.
      state.jobs.removeAll { $0 === job }
      return .found(false)
    }
    if !isWanted { throw ClientGone() }
  }
}

extension FilmCache.State {
  /// The film that is made next; nil if none may be begun. Other films overtake animated pictures that wait for one.
  fileprivate func next(_ limits: FilmCache.Limits) -> FilmCache.Job? {
    let running = jobs.filter(\.isRunning)
    guard running.count < limits.running else { return nil }
    let isFull = running.count(where: \.isAnimation) >= limits.animations
    return jobs.first { !$0.isRunning && !($0.isAnimation && isFull) }
  }

  /// Returns a cached film, which is the most recently used one then.
  fileprivate mutating func film(_ key: String) -> OpenFile? {
    guard let index = films.firstIndex(where: { $0.key == key }) else { return nil }
    let film = films.remove(at: index)
    films.append(film)
    return film.file
  }

  /// Removes the least recently used film that no client reads.
  ///
  /// - Returns: whether there was one.
  fileprivate mutating func evict(_ isCandidate: (SessionID) -> Bool = { _ in true }) -> Bool {
    for index in films.indices where isCandidate(films[index].session) {
      guard isKnownUniquelyReferenced(&films[index].file) else { continue }
      films.remove(at: index)
      return true
    }
    return false
  }

  /// Removes a client from a job, and the job with its last client, unless it runs: then its maker notices.
  fileprivate mutating func leave(_ job: FilmCache.Job) {
    job.clients -= 1
    if job.clients == 0 && !job.isRunning { jobs.removeAll { $0 === job } }
  }
}

/// The server makes or holds as many films as it may.
enum FilmsBusy: BusyError {
  /// The argument is the number of films that wait.
  case queue(Int)
  case room(bytes: Int, Int, Int, freeBytes: Int)

  var retryAfterS: Int { 10 }

  var description: String {
    switch self {
    case .queue(let count): "make the film: \(count) others wait to be made"
    case .room(let bytes, let films, let most, let free):
      "make the film: no room for \(bytes) bytes beside films that are being downloaded or made (at most \(films), "
        + "\(most) bytes together; \(free) bytes may be written to the disk); run stitch for a film of any size"
    }
  }
}

extension LowDiskSpace: BusyError {
  package var retryAfterS: Int { 30 }
}

extension HTTPRequest {
  /// - Throws: ``ClientGone``.
  func requireClient() throws { if isAbandoned() { throw ClientGone() } }
}

/// The client has closed its connection, so nothing is made for it.
struct ClientGone: ClassifiedError {
  var kind: Failure.Kind { .cancelled }
  var description: String { "the client closed its connection" }
}
