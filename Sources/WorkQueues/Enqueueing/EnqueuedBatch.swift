// The batches that `enqueue` makes of frames. They are read here as a worker will read them, but not decoded: `enqueue` refuses a
// batch that the worker would quarantine, for the same reason.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON

struct EnqueuedBatch {
  let name: String
  /// The paths of the files.
  let files: [String]
  /// The `batch.json` that states the facts of the options; nil if the files state all of them.
  let description: [UInt8]?

  /// Reads frames as the batches that workers take: one, or several if they are more than the limits of one.
  ///
  /// - Parameters:
  ///   - paths: image files, or one directory with them and perhaps a `batch.json`.
  ///   - options: facts that the files do not state.
  ///   - isArchived: whether each batch becomes an archive.
  /// - Throws: ``BadBatch``, ``DiskError``.
  static func all(
    of paths: [String], _ options: InputOptions, _ limits: Limits, isArchived: Bool = false
  ) throws -> [EnqueuedBatch] {
    if let finished = try finished(paths, options, limits, isArchived: isArchived) { return [finished] }
    let files = try files(paths)
    try requireOneOfEachName(files)
    let isDirectory = paths.count == 1 && files != paths
    let path = isDirectory ? paths[0] : DurableFile.parentDirectory(of: files[0])
    if files.contains(where: { lastComponent(of: $0) == NativeFormat.description }) {
      return [try described(files, in: path, options, limits)]
    }
    var facts = options
    let session = session(options)
    facts.session = session
    var folderLimits = limits
    folderLimits.splitsFolders = true
    let batch: BatchSessions
    do {
      batch = try BatchSessions(reading: path, files: files, options: facts, limits: folderLimits)
    } catch let bad as BadBatch {
      throw explained(bad, files, isDirectory: isDirectory, limits)
    }
    let reader = batch.readers[0]
    try requireImage(in: reader)
    guard reader.format != SequenceFormat.name || options.isSessionOnly && options.session == nil else {
      throw BadBatch(
        "enqueue", path, "one file of \(reader.batch.frames.count) pictures, whose times a batch.json cannot state",
        advice: "encode it, or enqueue it as <unix ms of its first picture>.gif without options")
    }
    let isPlain = options.isSessionOnly && reader.format != NamedTimesFormat.name
    if isPlain {
      // The worker reads plain names itself. In a directory, other files are listed as refused in the manifest.
      let timeless = files.first { instant(of: $0, limits) == nil }
      if let timeless, !isDirectory { throw withoutInstant(timeless) }
      guard files.contains(where: { instant(of: $0, limits) != nil }) else { throw withoutInstant(files[0]) }
    } else {
      guard batch.readers.count == 1, batch.refused.isEmpty else {
        throw BadBatch(
          "enqueue", path, "frames of several sessions", advice: "enqueue the frames of each session as a batch")
      }
    }
    func parts(isDescribed: Bool) throws -> [Batch] {
      let limits = partLimits(files, limits, isArchived: isArchived, isDescribed: isDescribed, isPlain: isPlain)
      return try batch.parts(limits).flatMap(\.readers).map(\.batch)
    }
    let batches: [EnqueuedBatch]
    if isPlain, try parts(isDescribed: false).count == batch.readers.count {
      let start = files.compactMap { instant(of: $0, limits) }.min() ?? reader.batch.frames[0].timeMs
      // A session that is named may be continued by another call.
      let grows = options.session != nil && reader.format == PlainFormat.name
      let description = grows ? NativeFormat.description(ofGrowing: reader.batch.session) : nil
      batches = [EnqueuedBatch(name: try complete("\(session)@\(start)"), files: files, description: description)]
    } else {
      batches = try described(parts(isDescribed: true), of: files, statingCapture: !isPlain)
    }
    for batch in batches { try batch.requireRoom(limits, isArchived: isArchived) }
    return batches
  }

  /// Returns the session of frames; a new one if the options name none.
  private static func session(_ options: InputOptions) -> String {
    options.session ?? WorkerID().description.filter { $0 != "~" }
  }

  /// Returns the batch of a folder of finished segments; nil for other frames.
  private static func finished(
    _ paths: [String], _ options: InputOptions, _ limits: Limits, isArchived: Bool
  ) throws -> EnqueuedBatch? {
    guard paths.count == 1, FinishedSegmentsFormat.mayBe(paths[0]) else { return nil }
    var facts = options
    facts.session = session(options)
    let batch = try BatchSessions(reading: paths[0], options: facts, limits: limits).readers[0].batch
    guard batch.videos != nil else { return nil }
    guard options.isSessionOnly else {
      throw BadBatch(
        "enqueue", paths[0], "finished segments have times of their own", advice: "leave out all options but --session")
    }
    let entries = try Directory(opening: paths[0]).entries(limit: limits.entries)
    let files = entries.filter { $0.kind == .file && (!isRecorderJunk($0.name) || isRecording($0.name)) }
    let made = EnqueuedBatch(
      name: try complete("\(batch.session)@\(batch.frames[0].timeMs)"),
      files: files.map { paths[0] + "/" + $0.name }, description: nil)
    try made.requireRoom(limits, isArchived: isArchived)
    return made
  }

  /// Refuses files that workers would refuse, before the first batch is shown to them.
  private func requireRoom(_ limits: Limits, isArchived: Bool) throws(BadBatch) {
    let entries = files.count + (description == nil ? 0 : 1)
    guard entries <= limits.entries else {
      throw BadBatch(
        "enqueue", name, "\(entries) files, more than the limit of \(limits.entries)",
        advice: "move the files elsewhere that are no pictures, or see --limit entries")
    }
    var bytes = 0
    for file in files {
      let size = Self.size(of: file) ?? 0
      let most = isRecording(file) ? limits.frameBytes : limits.fileBytes
      guard size <= most else {
        throw BadBatch("enqueue", file, "\(size) bytes, more than the limit of \(most)", advice: "move it elsewhere")
      }
      bytes += Self.headerBytes + size
    }
    guard !isArchived || bytes <= limits.unpackedBytes else {
      throw BadBatch(
        "enqueue", name, "\(bytes) bytes, more than the limit of \(limits.unpackedBytes)",
        advice: "move the files elsewhere that are no pictures, or see --limit unpacked-bytes")
    }
  }

  /// - Parameter files: with a `batch.json` that describes them.
  private static func described(
    _ files: [String], in path: String, _ options: InputOptions, _ limits: Limits
  ) throws -> EnqueuedBatch {
    guard options == InputOptions() else {
      throw BadBatch(
        "enqueue", NativeFormat.description,
        options.session == nil ? "states the facts itself" : "names the session itself",
        advice: "leave \(options.session == nil ? "the options" : "--session") out, or write them into batch.json")
    }
    let name = try complete(BatchReader.name(of: path))
    let readers = try BatchSessions(reading: name, files: files, limits: limits).readers
    if readers.count == 1 { try requireImage(in: readers[0]) }
    return EnqueuedBatch(name: name, files: files, description: nil)
  }

  /// Returns batches with their files. The last one has those that are no frames, too: its manifests list them as refused.
  private static func described(
    _ parts: [Batch], of files: [String], statingCapture: Bool
  ) throws -> [EnqueuedBatch] {
    var paths = Dictionary(files.map { (lastComponent(of: $0), $0) }, uniquingKeysWith: { first, _ in first })
    // The descriptions have the labels.
    paths[BatchSource.labelFile] = nil
    return try parts.enumerated().map { index, part in
      var own = part.frames.flatMap(\.paths).compactMap { paths.removeValue(forKey: $0) }
      if index == parts.count - 1 { own += paths.values.sorted() }
      let labels = part.labels.json.bytes().count
      guard labels <= labelBytes else {
        throw BadBatch(
          "enqueue", part.name, "its labels have \(labels) bytes, more than the limit of \(labelBytes)",
          advice: "leave some out")
      }
      return EnqueuedBatch(
        name: try complete("\(part.session)@\(part.frames[0].timeMs)"), files: own,
        description: NativeFormat.description(of: part, statesCapture: statingCapture))
    }
  }

  /// Bytes of a `batch.json` without its frames and the producer's metadata, and of a frame in it without its name.
  private static let (descriptionBytes, entryBytes) = (4 << 10, 96)
  /// Bytes of the labels in a `batch.json`.
  private static let labelBytes = 512 << 10
  /// Bytes of a file's header in an archive, with the padding.
  private static let headerBytes = 1_024

  /// Returns the limits of the workers.
  ///
  /// - Parameters:
  ///   - isDescribed: whether a `batch.json` lists the frames.
  ///   - isPlain: whether the worker decides how long they are held.
  private static func partLimits(
    _ files: [String], _ limits: Limits, isArchived: Bool, isDescribed: Bool, isPlain: Bool
  ) -> PartLimits {
    var sizes: [PartLimits.Size] = []
    if isDescribed {
      let most = limits.jsonBytes - limits.metadataBytes - descriptionBytes
      sizes.append(PartLimits.Size(most: most) { $0.paths.reduce(entryBytes) { $0 + jsonBytes(of: $1) } })
    }
    if isArchived {
      let paths = Dictionary(files.map { (lastComponent(of: $0), $0) }, uniquingKeysWith: { first, _ in first })
      sizes.append(
        PartLimits.Size(most: limits.unpackedBytes - limits.jsonBytes) { frame in
          frame.paths.reduce(0) { $0 + headerBytes + (paths[$1].flatMap(size) ?? 0) }
        })
    }
    return isPlain ? PartLimits(limits, maxHoldMs: nil, sizes: sizes) : PartLimits(limits, sizes: sizes)
  }

  /// Returns the most bytes of a text in JSON.
  private static func jsonBytes(of text: String) -> Int {
    text.utf8.reduce(0) { sum, byte in sum + (byte < 0x20 ? 6 : 2) }
  }

  /// Returns the size of a file in bytes; nil if it is gone.
  private static func size(of path: String) -> Int? {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : nil
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
      let directory = try Directory(opening: paths[0])
      let entries = try directory.entries(limit: Limits.ofFolder.entries).filter { !isRecorderJunk($0.name) }
      try requireNoLostPicture(entries, in: directory)
      files = entries.filter { $0.kind == .file }.map { paths[0] + "/" + $0.name }
    } else if let path = paths.first(where: { !DurableFile.exists($0) }) {
      throw BadBatch("enqueue", path, "no such file or directory", advice: "check the path")
    }
    if files.isEmpty { throw BadBatch("enqueue", "frames", "none there", advice: "name at least one image") }
    return files
  }

  /// Refuses a folder of which pictures would be left out: links to files elsewhere, and names that no path has.
  private static func requireNoLostPicture(_ entries: [Directory.Entry], in directory: Directory) throws {
    let files = Set(entries.filter { $0.kind == .file }.map(\.name))
    for entry in entries where PictureNames.isPicture(entry.name) {
      guard entry.name.utf8.elementsEqual(entry.bytes) else {
        throw BadBatch("enqueue", entry.name, "a name that is not UTF-8", advice: "give it another name")
      }
      guard entry.kind == .link else { continue }
      if case .file(let path?) = try directory.target(ofLink: entry.name), files.contains(path) { continue }
      let place = directory.path.hasSuffix("/") ? String(directory.path.dropLast()) : directory.path
      throw BadBatch(
        "enqueue", entry.name, FileRefusal.link, advice: "name the pictures one by one, as \(place.shellWord)/*")
    }
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
        case let kind: refusal = Refusal(bytes.isEmpty ? "an empty file" : kind?.fault ?? FileKind.unknown, nil)
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
