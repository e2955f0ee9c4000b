import FileSystem
import FrameBatches

/// A complete file with the time and the group that its name tells, or its time of modification.
struct CapturedFile: Equatable {
  let file: FolderFile
  /// In unix milliseconds.
  var timeMs: Int64
  /// The files of a group become one session after the other.
  let group: CaptureGroup
  let capture: Batch.Capture
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

  init(text: String) {
    let name = String(text.dropFirst())
    self = text.isEmpty ? .key(nil) : text.hasPrefix("=") ? .session(name) : .key(name)
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
  private let options: InputOptions
  private let limits: Limits

  init(_ folder: String, options: InputOptions, limits: Limits) {
    self.folder = folder
    self.options = options
    self.limits = limits
  }

  /// - Throws: ``BadBatch`` for a file whose name tells no time.
  func captured(_ file: FolderFile) throws -> CapturedFile {
    let batch = try sessions([file.name]).readers[0].batch
    let session = batch.session.description
    let group: CaptureGroup =
      session == Self.placeholder
      ? .key(nil)
      : session.hasPrefix(Self.placeholder + ".")
        ? .key(String(session.dropFirst(Self.placeholder.count + 1))) : .session(session)
    return CapturedFile(file: file, timeMs: batch.frames[0].timeMs, group: group, capture: batch.capture)
  }

  /// Reads the times of files that go into one batch: names that tell no more than the second are spread over it.
  func refined(_ files: [CapturedFile]) -> [CapturedFile] {
    guard zip(files, files.dropFirst()).contains(where: { $0.timeMs == $1.timeMs }),
      let readers = try? sessions(files.map(\.file.name)).readers, readers.count == 1,
      readers[0].batch.frames.count == files.count
    else { return files }
    let times = Dictionary(readers[0].batch.frames.map { ($0.source, $0.timeMs) }) { first, _ in first }
    let refined = files.map { file in
      var file = file
      file.timeMs = times[file.file.name] ?? file.timeMs
      return file
    }
    return refined.sorted { ($0.timeMs, $0.file.name) < ($1.timeMs, $1.file.name) }
  }

  private func sessions(_ names: [String]) throws -> BatchSessions {
    var options = options
    options.session = Self.placeholder
    return try BatchSessions(
      reading: folder, files: names.map { folder + "/" + $0 }, options: options, limits: limits)
  }
}
