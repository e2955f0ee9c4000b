// A directory of finished videos and of Sentry's events about them, as Sentry hands them out, or as `run --sentry` writes them.

import Encoding
import FileSystem
import FrameBatches

struct SegmentsDirectory {
  /// A video and the time when it starts.
  struct Source {
    let name: String
    /// Unix milliseconds.
    let startMs: Int64
    /// nil if the file's name alone has its time.
    let event: VideoEvent?
    /// Our manifest beside it; nil if there is none.
    let manifest: PublishedSegment?
  }

  let path: String
  /// By start, then by name; at least one.
  private(set) var sources: [Source] = []
  /// The videos that are not imported.
  private(set) var refused: [Problem] = []
  /// Remarks on events.
  private(set) var warnings: [Problem] = []

  private static let videoSuffixes = [".mp4", ".m4v", ".mov"]
  private static let advice =
    "put its event beside it as NAME.json, or name it segment-<segmentId>.mp4 or <unix ms>.mp4"

  /// Whether a directory is no session, but has videos.
  static func isRecognised(_ path: String, _ limits: Limits) -> Bool {
    guard !DurableFile.exists(path + "/" + IndexText.jsonFile), let directory = try? Directory(opening: path),
      let names = try? entries(of: directory, limits)
    else { return false }
    let isSession = names.contains { SegmentName.start(ofManifest: $0) != nil }
    return !isSession && names.contains { (try? kind(of: $0, in: directory)) == .video }
  }

  /// - Throws: ``BadSession`` if the directory has no video whose time is known, ``DiskError``, ``Cancelled``.
  init(reading path: String, _ limits: Limits, cancellation: Cancellation) throws {
    let directory = try Self.opened(path)
    var videos: [String] = []
    var events = EventList()
    var warnings: [Problem] = []
    var hasEvents = false
    for name in try Self.entries(of: directory, limits) {
      try cancellation.check()
      let kind = try Self.kind(of: name, in: directory)
      if kind == .video { videos.append(name) }
      hasEvents = hasEvents || kind == .events
      if kind == .events { warnings += try events.add(contentsOf: name, in: directory, limits) }
    }
    guard !videos.isEmpty else {
      throw BadSession(path, "no MP4 in it", advice: "name a directory of MP4 segments and their events")
    }
    self.init(path: path, warnings: warnings)
    for name in videos {
      place(
        name, events.match(name, isOnly: videos.count == 1), events.manifests[name], hasEvents: hasEvents, limits)
    }
    if sources.isEmpty {
      throw BadSession(path, "\(refused[0].file): \(refused[0].what)", advice: "see docs/input-formats.md")
    }
    if sources.count > limits.segments {
      throw BadSession(path, "more than the limit of \(limits.segments) segments", advice: "import parts of it")
    }
    sources.sort { ($0.startMs, $0.name) < ($1.startMs, $1.name) }
  }

  private init(path: String, warnings: [Problem]) {
    self.path = path
    self.warnings = warnings
  }

  /// Adds a video to those that can be imported, or to the others.
  private mutating func place(
    _ name: String, _ match: EventList.Match?, _ manifest: PublishedSegment?, hasEvents: Bool, _ limits: Limits
  ) {
    switch match {
    case .event(let event):
      sources.append(Source(name: name, startMs: event.startMs, event: event, manifest: manifest))
    case .ambiguous(let reason): refused.append(Problem(file: name, what: "\(reason); \(Self.advice)"))
    case nil:
      if let startMs = NameNumber.instant(in: name, limits) {
        sources.append(Source(name: name, startMs: startMs, event: nil, manifest: manifest))
      } else {
        let advice = hasEvents ? Self.advice : "name it <unix ms of its first picture>.mp4"
        refused.append(Problem(file: name, what: "no event tells when it was recorded; \(advice)"))
      }
    }
  }

  private static func opened(_ path: String) throws -> Directory {
    guard DurableFile.isReachableDirectory(path) else {
      throw BadSession(path, "no directory", advice: "name a directory of MP4 segments and their events")
    }
    return try Directory(opening: path)
  }

  /// Returns the names of the directory's plain files, in order.
  private static func entries(of directory: Directory, _ limits: Limits) throws -> [String] {
    // A video has one event, and a few other files may lie beside it.
    let limit = 4 * limits.segments
    let entries = try directory.entries(limit: limit)
    guard entries.count <= limit else {
      throw BadSession(directory.path, "more than \(limit) files", advice: "import parts of it")
    }
    return entries.filter { $0.kind == .file && !$0.name.hasPrefix(".") }.map(\.name)
  }

  private enum Kind { case video, events }

  /// Returns the kind of a file by its first bytes; a damaged video is one by its name.
  private static func kind(of name: String, in directory: Directory) throws -> Kind? {
    let start = try OpenFile(name, in: directory).map { FileBytes($0).bytes(at: 0, 64) } ?? []
    if start.dropFirst(4).starts(with: "ftyp".utf8) || videoSuffixes.contains(where: name.lowercased().hasSuffix) {
      return .video
    }
    return TextDocument.isJSON(start) ? .events : nil
  }
}

/// The events of a directory.
private struct EventList {
  enum Match {
    case event(VideoEvent)
    /// The reason why no event is taken.
    case ambiguous(String)
  }

  /// By the name of their file without suffixes.
  private var ofFiles: [String: [VideoEvent]] = [:]
  /// Our own manifests, by the name of their video.
  private(set) var manifests: [String: PublishedSegment] = [:]
  private var bySegmentID: [Int64: [VideoEvent]] = [:]
  private var byStart: [Int64: [VideoEvent]] = [:]
  private var all: [VideoEvent] = []
  /// The number of events in all files.
  private(set) var count = 0

  /// Adds the events in a file.
  ///
  /// - Returns: why some are not read.
  /// - Throws: ``BadSession`` if there are too many, ``DiskError``.
  mutating func add(contentsOf name: String, in directory: Directory, _ limits: Limits) throws -> [Problem] {
    guard let contents = try directory.contents(of: name, limit: VideoEvent.maximumBytes) else { return [] }
    guard case .bytes(let bytes) = contents else {
      guard case .refused(let reason) = contents else { return [] }
      return [Problem(file: name, what: "\(reason)")]
    }
    if let startMs = SegmentName.start(ofManifest: name),
      let (manifest, _) = try? SegmentManifest.read(bytes, of: startMs, path: name)
    {
      manifests[manifest.file] = manifest
      return []
    }
    let found = VideoEvent.all(in: bytes, limits)
    add(found.events, from: name)
    // Twice as many as videos: an event may be in two files.
    guard count <= 2 * limits.segments else {
      throw BadSession(directory.path, "more than \(2 * limits.segments) events", advice: "import parts of it")
    }
    return found.problems.map { Problem(file: name, what: $0) }
  }

  private mutating func add(_ events: [VideoEvent], from file: String) {
    count += events.count
    ofFiles[NameNumber.stem(of: file), default: []] += events
    for event in events {
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

  /// Returns a name without the suffixes of videos and events.
  static func stem(of name: String) -> String {
    let lowercased = name.lowercased()
    guard let suffix = suffixes.first(where: { lowercased.hasSuffix($0) }), name.count > suffix.count else {
      return name
    }
    return stem(of: String(name.dropLast(suffix.count)))
  }

  private static func digits(in name: String) -> [Int64] {
    stem(of: name).split { !($0.isASCII && $0.isNumber) }.compactMap { Int64($0) }
  }

  static func last(in name: String) -> Int64? { digits(in: name).last }

  /// Returns the last number that is a capture in unix milliseconds.
  static func instant(in name: String, _ limits: Limits) -> Int64? {
    digits(in: name).last { limits.instants.contains($0) }
  }
}
