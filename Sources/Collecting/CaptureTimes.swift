import Batching
import FileSystem
import FrameBatches

/// A picture, and the group that its name tells.
struct CapturedFile: Equatable {
  var picture: LoosePicture
  /// The files of a group become one session after the other.
  let group: CaptureGroup
}

/// The files of a folder that belong to one screen, page or camera.
enum CaptureGroup: Hashable {
  /// The names tell a key, such as `m1` for a monitor, or none.
  case key(String?)
  /// The names tell the session.
  case session(String)

  /// The text that the journal has.
  var text: String {
    switch self {
    case .key(nil): ""
    case .key(let key?): "." + key
    case .session(let name): "=" + name
    }
  }

  /// The name of a session of this group.
  ///
  /// - Parameter base: the session of a folder without groups.
  func session(_ base: String) -> String {
    switch self {
    case .key(let key): key.map { "\(base).\($0)" } ?? base
    case .session(let name): name
    }
  }
}

/// Reads the capture times of files, by the rules for batches of such files.
struct CaptureTimes {
  /// A session that no user names so.
  private static let placeholder = "_._"

  private let folder: String
  let options: InputOptions
  private let limits: Limits

  /// - Parameter folder: the watched folder.
  init(_ folder: String, options: InputOptions, limits: Limits) {
    self.folder = folder
    self.options = options
    self.limits = limits
  }

  /// Whether the capture time of a file is its time of modification, so that each version of a name is a picture of its own.
  var areOfVersions: Bool { options.times == .modified }

  /// - Throws: ``BadBatch`` for a file whose name tells no time.
  func captured(_ file: FolderFile) throws -> CapturedFile {
    if let quick = quickly(file) { return quick }
    let batch = try sessions([file.name]).readers[0].batch
    let session = batch.session.description
    let group: CaptureGroup =
      session == Self.placeholder
      ? .key(nil)
      : session.hasPrefix(Self.placeholder + ".")
        ? .key(String(session.dropFirst(Self.placeholder.count + 1))) : .session(session)
    return CapturedFile(
      picture: LoosePicture(file, timeMs: batch.frames[0].timeMs, capture: batch.capture), group: group)
  }

  /// Returns a version of a file, of which a copy was made because its time of modification is its capture time.
  ///
  /// - Parameter copy: its name.
  func version(_ file: FolderFile, held copy: String? = nil) -> CapturedFile {
    CapturedFile(
      picture: LoosePicture(
        file, held: copy, timeMs: file.stamp.modified.flooredDivision(by: 1_000_000),
        capture: options.capture ?? .onChange), group: .key(nil))
  }

  /// Does the same for the most frequent files, without reading a batch: its cost would be that of all other work.
  private func quickly(_ file: FolderFile) -> CapturedFile? {
    var captured = version(file)
    if options.times == nil {
      let name = lastComponent(of: file.name)
      guard PlainFormat.isUnixMilliseconds(name), let instant = PlainFormat.instant(ofName: name) else { return nil }
      captured.picture = LoosePicture(file, timeMs: instant, capture: options.capture ?? .interval)
    } else if !areOfVersions {
      return nil
    }
    return limits.instants.contains(captured.picture.timeMs) ? captured : nil
  }

  /// Reads the times of files that go into one batch: those that tell no more than the second are spread over it.
  ///
  /// - Parameters:
  ///   - files: by capture.
  ///   - nextMs: the next capture; nil if it is not known.
  func refined(_ files: [LoosePicture], before nextMs: Int64?) -> [LoosePicture] {
    guard zip(files, files.dropFirst()).contains(where: { $0.timeMs == $1.timeMs }) else {
      return files
    }
    if areOfVersions { return spreadVersions(files, before: nextMs) }
    let refined = Dictionary(grouping: files) { DurableFile.parentDirectory(of: $0.file.name) }.values.flatMap(spread)
    return refined.sorted { ($0.timeMs, $0.file.name) < ($1.timeMs, $1.file.name) }
  }

  private func spreadVersions(_ files: [LoosePicture], before nextMs: Int64?) -> [LoosePicture] {
    let ordered = files.sorted { one, other in
      let (time, otherTime) = (one.file.stamp.modified, other.file.stamp.modified)
      return time == otherTime ? ModifiedTimes.isBefore(one.file.name, other.file.name) : time < otherTime
    }
    let times = ModifiedTimes.spread(ordered.map { ($0.file.name, $0.timeMs) }, before: nextMs)
    return zip(ordered, times).map { file, time in
      var file = file
      file.timeMs = time.timeMs
      return file
    }.sorted { $0.timeMs < $1.timeMs }
  }

  /// - Parameter files: of one folder.
  private func spread(_ files: [LoosePicture]) -> [LoosePicture] {
    guard let readers = try? sessions(files.map(\.file.name)).readers, readers.count == 1,
      readers[0].batch.frames.count == files.count
    else { return files }
    let times = Dictionary(readers[0].batch.frames.map { ($0.source, $0.timeMs) }) { first, _ in first }
    return files.map { file in
      var file = file
      file.timeMs = times[lastComponent(of: file.file.name)] ?? file.timeMs
      return file
    }
  }

  /// - Parameter names: of one folder. The folders of a name may tell the day.
  private func sessions(_ names: [String]) throws -> BatchSessions {
    var options = options
    options.session = Self.placeholder
    let below = DurableFile.parentDirectory(of: names[0])
    return try BatchSessions(
      reading: folder, inFolders: below == "." ? nil : lastComponent(of: folder) + "/" + below,
      files: names.map { folder + "/" + $0 }, options: options, limits: limits)
  }
}
