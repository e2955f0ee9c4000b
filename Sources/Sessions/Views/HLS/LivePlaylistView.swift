import Encoding
import FileSystem
import FrameBatches

extension ViewKinds {
  /// A live HLS playlist.
  package static let hls = ViewKinds(rawValue: 2)
}

/// `hls/`: players follow a session while it grows.
struct LivePlaylistView: SessionView {
  var kind: ViewKinds { .hls }
  var directory: String? { HLSPackage.directory }
  var holdsSegmentsBack: Bool { true }

  var entryPoints: [String] {
    [HLSPlaylist.file, HLSViews.multivariantFile, HLSViews.keyFramesFile, HLSCaptions.file]
      .map { HLSPackage.directory + "/" + $0 }
  }

  private func package(_ update: ViewUpdate) -> HLSPackage {
    HLSPackage(
      path: update.directory.path + "/" + HLSPackage.directory, temporary: update.temporary, nowMs: update.nowMs,
      marks: { update.marks[$0.startMs] })
  }

  func canGrow(by new: NewSegments) -> Bool { new.areLast }

  func extend(_ update: ViewUpdate, by new: NewSegments) throws -> ViewOutcome? {
    let package = package(update)
    guard let end = try package.lastStart(), let index = new.starts.lastIndex(of: end) else { return nil }
    return try package.extend(
      by: new.starts[index...].map(new.segment),
      sessionStartMs: update.directory.retention()?.originMs ?? new.index.index.startMs,
      releasedMs: update.releasedMs, hasEnded: new.index.index.isComplete, from: update.directory)
  }

  func rebuild(
    _ update: ViewUpdate, from segments: [PublishedSegment], _ entries: [Directory.Entry]
  ) throws -> ViewOutcome {
    let hasEnded = entries.contains { $0.name == SessionEnd.file } || segments.contains(where: \.isFinal)
    return try package(update).update(
      segments, releasedMs: update.releasedMs, hasEnded: hasEnded, retention: update.directory.retention(),
      isWindow: update.isWindow, from: update.directory, progress: update.progress)
  }

  func removeFirst(_ update: ViewUpdate, _ removal: FirstSegments) throws -> Bool {
    try package(update).slide(to: removal.first.startMs, originMs: removal.originMs, in: update.directory)
  }

  func forget(_ session: SessionID, output: String) throws {
    let lists = SupersededLists(output: output)
    try lists.remove(session)
    lists.tidyUp()
  }
}
