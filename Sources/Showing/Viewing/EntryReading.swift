// Reads the manifests of a session for its playback, those of a long session on several threads.

import Encoding
import FileSystem
import Glibc
import Sessions
import Synchronization

/// The files of a session that a playback needs to know. The directory of a day has tens of thousands.
struct SessionNames {
  /// The starts of the manifests, in order.
  private(set) var manifests: [Int64] = []
  /// The starts of the videos.
  private(set) var videos: Set<Int64> = []
  /// The starts of the segments with labels that came later.
  private(set) var labels: Set<Int64> = []
  /// Whether the session's end is recorded.
  private(set) var hasEnd = false

  init(in directory: Directory) throws(DiskError) {
    var (manifests, videos, labels, hasEnd): ([Int64], Set<Int64>, Set<Int64>, Bool) = ([], [], [], false)
    try directory.visit { name in
      let bytes = UnsafeRawBufferPointer(start: name, count: strlen(name))
      if let start = SegmentName.start(ofManifest: bytes) {
        manifests.append(start)
      } else if let start = SegmentName.start(ofVideo: bytes) {
        videos.insert(start)
      } else if let start = SegmentName.start(ofLabels: bytes) {
        labels.insert(start)
      } else if strcmp(name, SessionEnd.file) == 0 {
        hasEnd = true
      }
    }
    manifests.sort()
    (self.manifests, self.videos, self.labels, self.hasEnd) = (manifests, videos, labels, hasEnd)
  }
}

/// A reading of all entries of a session.
final class EntryReading: Sendable {
  /// The entries and problems of some manifests.
  private struct Part: Sendable {
    let first: Int
    var entries: [SessionPlayback.Entry] = []
    var problems: [Problem] = []
  }

  /// The manifests that a thread takes at a time. A session of fewer is read on one thread.
  static let manifestsAtOnce = 256
  private static let maximumThreads = 4

  private let starts: [Int64]
  private let labels: Set<Int64>
  private let directory: SessionDirectory
  private let opened: Directory
  private let cached: [Int64: SessionPlayback.Entry]
  private let state = Mutex((next: 0, parts: [Part]()))

  /// - Parameters:
  ///   - starts: of the segments, in order.
  ///   - labels: the starts of those with labels that came later.
  ///   - opened: the session's directory.
  ///   - cached: entries of an earlier reading by their starts. They are valid while the stamps of their files stay.
  init(
    of starts: [Int64], labels: Set<Int64>, in directory: SessionDirectory, _ opened: Directory,
    cached: [Int64: SessionPlayback.Entry]
  ) {
    (self.starts, self.labels, self.directory, self.opened, self.cached) = (starts, labels, directory, opened, cached)
  }

  /// Returns the entries in the order of their starts, and the problems of manifests that cannot be read.
  func read() -> (entries: [SessionPlayback.Entry], problems: [Problem]) {
    let helpers = ThreadGroup()
    let batches = (starts.count + Self.manifestsAtOnce - 1) / Self.manifestsAtOnce
    for _ in 0..<max(0, min(ThreadGroup.processors, Self.maximumThreads, batches) - 1) {
      // Without more threads, this one reads all.
      guard (try? helpers.start { [self] in work() }) != nil else { break }
    }
    work()
    helpers.join()
    let parts = state.withLock { $0.parts }.sorted { $0.first < $1.first }
    return (parts.flatMap(\.entries), parts.flatMap(\.problems))
  }

  private func work() {
    while let first = next() {
      let part = read(from: first)
      state.withLock { $0.parts.append(part) }
    }
  }

  /// Returns the index of the first manifest that no thread has taken, and takes it and those behind it.
  private func next() -> Int? {
    state.withLock { state in
      guard state.next < starts.count else { return nil }
      defer { state.next += Self.manifestsAtOnce }
      return state.next
    }
  }

  private func read(from first: Int) -> Part {
    var part = Part(first: first)
    for start in starts[first...].prefix(Self.manifestsAtOnce) {
      do {
        part.entries.append(try entry(start, like: part.entries.last))
      } catch {
        part.problems.append(Problem(file: SegmentName.manifest(start), what: "\(error)"))
      }
    }
    return part
  }

  private func entry(_ start: Int64, like other: SessionPlayback.Entry?) throws -> SessionPlayback.Entry {
    let labelStamp = labels.contains(start) ? opened.stamp(of: SegmentName.labels(start)) : nil
    if let entry = cached[start], entry.labelStamp == labelStamp,
      entry.stamp == opened.stamp(of: SegmentName.manifest(start))
    {
      return entry
    }
    var entry = try SessionPlayback.Entry(start, of: directory, in: opened, like: other)
    entry.labelStamp = labelStamp
    return entry
  }
}
