// The batch that `enqueue` makes of frames. It is read here as a worker will read it, but not decoded: `enqueue` refuses a batch
// that the worker would quarantine, for the same reason.

import Encoding
import FileSystem
import FrameBatches

struct EnqueuedBatch {
  let name: String
  /// The paths of the files.
  let files: [String]
  /// The `batch.json` that states the facts of the options; nil if the files state all of them.
  let description: [UInt8]?

  /// - Parameters:
  ///   - paths: image files, or one directory with them and perhaps a `batch.json`.
  ///   - options: facts that the files do not state.
  /// - Throws: ``BadBatch``, ``DiskError``.
  init(of paths: [String], _ options: InputOptions, _ limits: Limits) throws {
    files = try Self.files(paths)
    try Self.requireOneOfEachName(files)
    let isDirectory = paths.count == 1 && files != paths
    let path = isDirectory ? paths[0] : DurableFile.parentDirectory(of: files[0])
    if files.contains(where: { lastComponent(of: $0) == NativeFormat.description }) {
      guard options == InputOptions() else {
        throw BadBatch(
          "enqueue", NativeFormat.description,
          options.session == nil ? "states the facts itself" : "names the session itself",
          advice: "leave \(options.session == nil ? "the options" : "--session") out, or write them into batch.json")
      }
      name = try Self.complete(BatchReader.name(of: path))
      description = nil
      let readers = try BatchSessions(reading: name, files: files, limits: limits).readers
      if readers.count == 1 { try Self.requireImage(in: readers[0]) }
      return
    }
    var facts = options
    let session = options.session ?? WorkerID().description.filter { $0 != "~" }
    facts.session = session
    let batch: BatchSessions
    do {
      batch = try BatchSessions(reading: path, files: files, options: facts, limits: limits)
    } catch let bad as BadBatch {
      throw Self.explained(bad, files, isDirectory: isDirectory, limits)
    }
    let reader = batch.readers[0]
    try Self.requireImage(in: reader)
    guard options.isSessionOnly, reader.format != NamedTimesFormat.name else {
      guard batch.readers.count == 1, batch.refused.isEmpty else {
        throw BadBatch(
          "enqueue", path, "frames of several sessions", advice: "enqueue the frames of each session as a batch")
      }
      name = try Self.complete("\(reader.batch.session)@\(reader.batch.frames[0].timeMs)")
      description = NativeFormat.description(of: reader.batch)
      return
    }
    // The worker reads plain names itself. In a directory, other files are listed as refused in the manifest.
    let timeless = files.first { Self.instant(of: $0, limits) == nil }
    if let timeless, !isDirectory { throw Self.withoutInstant(timeless) }
    guard let start = files.compactMap({ Self.instant(of: $0, limits) }).min() else {
      throw Self.withoutInstant(files[0])
    }
    name = try Self.complete("\(session)@\(start)")
    description = nil
  }

  private static func complete(_ name: String) throws -> String {
    guard BatchDirectory.isComplete(name) else {
      throw BadBatch(
        "enqueue", name, "workers ignore this name: it marks an incomplete batch",
        advice: "rename it: no dot in front, no .tmp or .part behind")
    }
    return name
  }

  private static func files(_ paths: [String]) throws -> [String] {
    if paths.count > 1, let directory = paths.first(where: { DurableFile.isReachableDirectory($0) }) {
      throw BadBatch("enqueue", directory, "a directory beside other frames", advice: "enqueue one directory at a time")
    }
    var files = paths
    if paths.count == 1, DurableFile.isReachableDirectory(paths[0]) {
      files = try Directory(opening: paths[0]).entries()
        .filter { $0.kind == .file && !isRecorderJunk($0.name) }.map { paths[0] + "/" + $0.name }
    } else if let path = paths.first(where: { !DurableFile.exists($0) }) {
      throw BadBatch("enqueue", path, "no such file or directory", advice: "check the path")
    }
    if files.isEmpty { throw BadBatch("enqueue", "frames", "none there", advice: "name at least one image") }
    return files
  }

  private static func requireOneOfEachName(_ files: [String]) throws {
    var seen: Set<String> = []
    for file in files where !seen.insert(lastComponent(of: file)).inserted {
      throw BadBatch("enqueue", file, "a second file of that name", advice: "enqueue them as two batches")
    }
  }

  private static func instant(of file: String, _ limits: Limits) -> Int64? {
    PlainFormat.instant(ofName: lastComponent(of: file)).flatMap { limits.instants.contains($0) ? $0 : nil }
  }

  /// Returns the reader's error; it blames a file that the user has named one by one.
  private static func explained(_ bad: BadBatch, _ files: [String], isDirectory: Bool, _ limits: Limits) -> BadBatch {
    guard !isDirectory, let file = files.first(where: { instant(of: $0, limits) == nil }) else { return bad }
    let isImage = (try? Enqueuer.bytes(of: file, limits)).map { FileKind(of: $0) != nil } ?? true
    guard isImage else { return withoutInstant(file) }
    return BadBatch("enqueue", file, "the name is no capture in unix milliseconds (\(bad.cause))", advice: bad.advice)
  }

  private static func withoutInstant(_ file: String) -> BadBatch {
    BadBatch(
      "enqueue", file, "the name is no capture in unix milliseconds",
      advice:
        "name it <unix ms>.jpg or .png, add --name-time or --start and --fps, or send a directory with a batch.json")
  }

  /// Refuses a batch without any file that begins as an image within the limits: no worker could decode a frame of it.
  private static func requireImage(in reader: BatchReader) throws {
    guard reader.batch.frames.allSatisfy({ $0.paths.count == 1 && $0.look.raws.allSatisfy { $0 == nil } }) else {
      return
    }
    var refused: [RefusedFrame] = []
    for frame in reader.batch.frames {
      switch try reader.images(of: frame).first {
      case .bytes(let bytes)?:
        let refusal: Refusal
        switch FileKind(of: bytes) {
        case .image(let kind):
          // A picture without a readable size is left to the decoder.
          guard let excess = kind.size(of: bytes)?.excess(of: reader.limits) else { return }
          refusal = excess
        case .otherImage(let other): refusal = other.refusal
        default: refusal = bytes.isEmpty ? "an empty file" : "neither JPEG, PNG nor WebP"
        }
        refused.append(RefusedFrame(source: frame.source, undecoded: refusal))
      case .refused(let refusal)?: refused.append(RefusedFrame(source: frame.source, reason: refusal.text))
      case nil: break
      }
    }
    throw BadBatch(undecodable: reader.batch, refused)
  }
}

extension InputOptions {
  /// Whether they state no more than a session.
  fileprivate var isSessionOnly: Bool {
    var others = self
    others.session = nil
    return others == InputOptions()
  }
}
