// Finished videos and Sentry's events about them, as Sentry's SDKs upload them, Sentry hands them out, or `run --sentry` writes them.
// The frames of the draft are the videos.

import FileSystem
import JSON

package enum FinishedSegmentsFormat: BatchFormat {
  package static let name = "finished segments"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    // The user says that the files are pictures.
    guard source.options.times == nil, let files = SegmentFiles(in: source.contents) else { return nil }
    var draft = BatchDraft()
    var videos = FinishedVideos(path: source.path)
    let events = try VideoEventList(reading: files, in: source, limits)
    for path in files.videos {
      switch events.match(path, isOnly: files.videos.count == 1) {
      case .event(let event):
        draft.add(path, atMs: event.startMs)
        videos.facts[path] = .init(event: event, manifest: events.manifests[path])
      case .ambiguous(let reason):
        videos.unplaced.append(RefusedFrame(source: path, reason: "\(reason); \(advice)"))
      case nil:
        guard let startMs = NameNumber.instant(in: path, limits) else {
          let advice = events.count > 0 ? advice : "name it <unix ms of its first picture>.mp4"
          videos.unplaced.append(
            RefusedFrame(source: path, reason: "no event tells when it was recorded; \(advice)"))
          continue
        }
        draft.add(path, atMs: startMs)
        videos.facts[path] = .init(event: nil, manifest: events.manifests[path])
      }
    }
    // A few recordings beside pictures are no batch.
    guard draft.frames.count > files.pictures.count, let lastMs = draft.frames.map(\.timeMs).max() else { return nil }
    guard draft.frames.count <= limits.segments else {
      throw BadBatch(
        "read", source.name, "\(draft.frames.count) videos, more than the limit of \(limits.segments)",
        advice: "send parts of it")
    }
    // The videos tell how long they last.
    draft.endMs = lastMs + 1
    videos.unplaced += source.contents.refusedRecordings
    draft.refused =
      videos.unplaced
      + files.pictures.map { RefusedFrame(source: $0, reason: "a picture beside finished segments", kind: .otherName) }
      + files.inFolders.map { RefusedFrame(source: $0, reason: "in a folder of its own", kind: .inFolder) }
    draft.sideFiles = Set(files.others)
    draft.warnings = events.warnings
    draft.videos = videos
    return [draft]
  }

  /// Whether a folder has more videos than pictures, without those in folders.
  package static func mayBe(_ folder: String) -> Bool {
    guard DurableFile.isReachableDirectory(folder), let entries = try? Directory(opening: folder).entries() else {
      return false
    }
    let videos = entries.count { $0.kind == .file && PictureNames.isVideo($0.name) }
    return videos > 0 && videos > entries.count { PictureNames.isPicture($0.name) }
  }

  fileprivate static let advice =
    "put its event beside it as NAME.json, or name it segment-<segmentId>.mp4 or <unix ms>.mp4"

  /// Returns the remedy for videos of which none can be placed; nil if the batch has none, or more pictures.
  static func advice(on source: BatchSource, _ limits: Limits) -> (first: String, advice: String)? {
    guard let files = SegmentFiles(in: source.contents) else { return nil }
    let isTimed = files.videos.contains { NameNumber.instant(in: $0, limits) != nil }
    if isTimed, source.options.times != nil {
      return (files.videos[0], "leave out --name-time, --times, --start and --fps: videos have times of their own")
    }
    let hasEvents = files.others.contains { path in
      TextDocument.isJSON(((try? source.contents.start(of: path, count: 64)) ?? nil) ?? [])
    }
    return (
      files.videos[0],
      hasEvents
        ? "if it is a finished segment, \(advice)"
        : "if these are finished segments, name each <unix ms of its first picture>.mp4, or put Sentry's video events beside them"
    )
  }
}

extension BatchDraft {
  /// Adds a video. Its folder in an archive is no part of its name.
  fileprivate mutating func add(_ path: String, atMs startMs: Int64) {
    frames.append(Frame(source: lastComponent(of: path), path: path, timeMs: startMs))
  }
}

/// The files of a container that has more videos than pictures.
private struct SegmentFiles {
  private(set) var videos: [String] = []
  private(set) var pictures: [String] = []
  private(set) var others: [String] = []
  /// Videos in folders of the folder.
  private(set) var inFolders: [String] = []

  /// - Returns: nil if there are fewer videos, or they lie in several folders.
  init?(in contents: any BatchContents) {
    let top = contents.topNames
    var found = contents.recordings + top.filter(PictureNames.isVideo)
    guard !found.isEmpty else { return nil }
    if contents.isLoose {
      inFolders = found.filter { $0.contains("/") }
      found.removeAll { $0.contains("/") }
    }
    pictures = top.filter(PictureNames.isPicture)
    let folders = Set(found.map { $0.dropLast(lastComponent(of: $0).utf8.count) })
    guard folders.count == 1, found.count > pictures.count else { return nil }
    videos = found.sorted()
    others = top.filter { !PictureNames.isPicture($0) && !PictureNames.isVideo($0) }
  }
}

/// The events of a batch.
private struct VideoEventList {
  enum Match {
    case event(VideoEvent)
    /// The reason why no event is taken.
    case ambiguous(String)
  }

  /// By the path of their file without suffixes.
  private var ofFiles: [String: [VideoEvent]] = [:]
  /// The paths of our own manifests, by the path of their video.
  private(set) var manifests: [String: String] = [:]
  private var bySegmentID: [Int64: [VideoEvent]] = [:]
  private var byStart: [Int64: [VideoEvent]] = [:]
  private var all: [VideoEvent] = []
  /// The number of events in all files.
  private(set) var count = 0
  private(set) var warnings: [String] = []
  private static let maximumWarnings = 20

  /// - Throws: ``BadBatch`` if there are too many, ``DiskError``.
  init(reading files: SegmentFiles, in source: BatchSource, _ limits: Limits) throws {
    var left = limits.unpackedBytes
    for path in files.others {
      guard TextDocument.isJSON(try source.contents.start(of: path, count: 64) ?? []) else { continue }
      switch try source.contents.contents(of: path, limit: VideoEvent.maximumBytes) {
      case .bytes(let bytes)?:
        left -= bytes.count
        guard left >= 0 else {
          throw BadBatch(
            "read", source.name, "more than \(limits.unpackedBytes) bytes of events", advice: "send parts of it")
        }
        add(bytes, from: path, limits)
      case .refused(let refusal)?: warn("\(path): \(refusal)")
      case nil: break
      }
      // Twice as many as videos: an event may be in two files.
      guard count <= 2 * limits.segments else {
        throw BadBatch(
          "read", source.name, "more than \(2 * limits.segments) video events", advice: "send parts of it")
      }
    }
  }

  private mutating func warn(_ text: String) {
    if warnings.count < Self.maximumWarnings { warnings.append(text) }
  }

  private mutating func add(_ bytes: [UInt8], from path: String, _ limits: Limits) {
    if let manifest = try? JSONParser.parse(bytes).object, let video = manifest["file"]?.string,
      manifest["format"]?.string?.hasPrefix("segment-manifest/") == true
    {
      manifests[path.dropLast(lastComponent(of: path).count) + video] = path
      return
    }
    let found = VideoEvent.all(in: bytes, limits)
    for problem in found.problems { warn("\(path): \(problem)") }
    count += found.events.count
    ofFiles[NameNumber.stem(of: path), default: []] += found.events
    for event in found.events {
      // One event may be in two files.
      guard byStart[event.startMs]?.contains(event) != true else { continue }
      all.append(event)
      byStart[event.startMs, default: []].append(event)
      if let id = event.segmentID { bySegmentID[id, default: []].append(event) }
    }
  }

  /// Returns the event of a video: the one in the file of the same name, else the one whose `segmentId` or timestamp is the last
  /// number of the name, else the only one.
  func match(_ video: String, isOnly: Bool) -> Match? {
    if let own = ofFiles[NameNumber.stem(of: video)], own.count == 1 { return .event(own[0]) }
    if let number = NameNumber.last(in: video) {
      let candidates = byStart[number] ?? bySegmentID[number] ?? []
      if candidates.count == 1 { return .event(candidates[0]) }
      if candidates.count > 1 { return .ambiguous("\(candidates.count) events fit to number \(number)") }
    }
    return isOnly && all.count == 1 ? .event(all[0]) : nil
  }
}

/// Numbers in names of files.
private enum NameNumber {
  private static let suffixes = [
    ".json", ".jsonl", ".ndjson", ".sentry", ".event", ".mp4", ".m4v", ".mov",
  ]

  /// Returns a path without the suffixes of videos and events.
  static func stem(of path: String) -> String {
    let lowercased = path.lowercased()
    guard let suffix = suffixes.first(where: { lowercased.hasSuffix($0) }), path.count > suffix.count else {
      return path
    }
    return stem(of: String(path.dropLast(suffix.count)))
  }

  private static func digits(in path: String) -> [Int64] {
    stem(of: lastComponent(of: path)).split { !($0.isASCII && $0.isNumber) }.compactMap { Int64($0) }
  }

  static func last(in path: String) -> Int64? { digits(in: path).last }

  /// Returns the last number that is a capture in unix milliseconds.
  static func instant(in path: String, _ limits: Limits) -> Int64? {
    digits(in: path).last { limits.instants.contains($0) }
  }
}
