// From a path to a batch: open the container, find the format that knows it, check what it says.

import FileSystem
import Glibc

/// A batch and the bytes of its frames.
package struct BatchReader {
  package let batch: Batch
  /// The name of the batch's format.
  package let format: String
  package let contents: any BatchContents
  package let limits: Limits

  /// Each format takes a batch that it recognises; the plain format is last.
  private static var formats: [any BatchFormat.Type] {
    [
      NativeFormat.self, SentryCocoaFormat.self, SentryAndroidFormat.self, OpenReplayFramesFormat.self,
      RejourneyFramesFormat.self, RecorderTarFormat.self, RejourneySpillFormat.self, PlainFormat.self,
    ]
  }

  /// Reads a batch: a directory, or an archive.
  ///
  /// - Parameters:
  ///   - path: a directory or an archive; `-` reads an archive from standard input.
  ///   - files: the images that the batch consists of, beside each other; then `path` is their directory and only names the batch.
  ///   - session: the session of a batch that does not name its own; else the batch's name up to the first `@`.
  ///   - unpacker: where archives are taken apart; nil for right here, for archives that can be trusted.
  ///   - isCancelled: asked now and then while an archive is read.
  /// - Throws: ``BadBatch`` for anything that is no batch, ``DiskError`` when reading fails, ``Cancelled``.
  package init(
    reading path: String, files: [String] = [], session: String? = nil, limits: Limits = Limits(),
    unpacker: (any ArchiveUnpacker)? = nil,
    isCancelled: @escaping () -> Bool = { false }
  ) throws {
    let name = path == "-" ? "stdin" : Self.name(of: path)
    let contents: any BatchContents
    let isArchive: Bool
    var unpacked: UnpackedArchive?
    defer { unpacked?.release(nil) }
    do {
      isArchive = try files.isEmpty && (path == "-" || !DurableFile.isDirectory(path))
      if isArchive {
        let archive = try Self.unpack(path, name, limits, unpacker, isCancelled)
        unpacked = archive
        contents = archive.contents
      } else {
        contents =
          try files.isEmpty ? DirectoryContents(opening: path, limits: limits) : ListedContents(files, limits: limits)
      }
    } catch let failure as DiskError {
      throw failure.blaming(name) ?? failure
    }
    // A batch from a pipe is named by its session.
    let called = path == "-" ? session ?? name : isArchive ? Self.stem(of: name) : name
    let source = BatchSource(name: called, contents: contents)
    try Self.requireOneDescription(contents, name)
    let fallback = session ?? (path == "-" ? nil : String(source.name.prefix { $0 != "@" }))
    for format in Self.formats {
      if let open = try BatchReader(source, as: format, name: name, session: fallback, limits: limits) {
        self = open
        unpacked.take()?.release(open.batch.session)
        return
      }
    }
    throw UnknownBatch.explain(contents, name: name, limits: limits)
  }

  /// Refuses a `batch.json` that would be ignored, because its masks would not be painted: with a similar name, in a folder, as a
  /// link, or as one of two.
  private static func requireOneDescription(_ contents: any BatchContents, _ batch: String) throws {
    func isDescription(_ name: String) -> Bool {
      lastComponent(of: name).lowercased().hasPrefix(NativeFormat.description)
    }
    let refused = contents.refused.filter { isDescription($0.source) }
    let names = contents.names.filter(isDescription) + refused.map(\.source)
    guard let name = names.first else { return }
    let isReadable =
      refused.isEmpty && contents.topNames.contains(name) && lastComponent(of: name) == NativeFormat.description
    guard names.count == 1, isReadable else {
      let cause = refused.first?.reason ?? (names.count > 1 ? "not the only batch.json" : "not batch.json")
      throw BadBatch(
        "read", batch, "\(name.shortened(to: 255)) is \(cause)",
        advice: "put one regular file named batch.json beside the frames")
    }
  }

  /// Reads a container as one format; nil if it is another format's.
  ///
  /// - Parameters:
  ///   - name: what to call it in messages.
  ///   - session: the session of a batch that does not name its own.
  package init?(
    _ source: BatchSource, as format: any BatchFormat.Type, name: String, session: String?, limits: Limits
  ) throws {
    guard var draft = try format.read(source, limits: limits) else { return nil }
    let seen = draft.sideFiles.union(draft.frames.flatMap(\.paths) + draft.refused.map(\.source))
      .union(source.contents.topNames)
    let left = source.contents.names.filter { !seen.contains($0) }
    draft.refused += left.map { RefusedFrame(source: $0, reason: "in a folder of its own") }
    draft.refused = source.contents.refused + draft.refused
    draft.session = draft.session ?? session
    self.format = format.name
    batch = try Batch(draft, name: name, limits: limits)
    contents = source.contents
    self.limits = limits
  }

  /// The last component, of `.` and `..` too.
  package static func name(of path: String) -> String {
    let name = lastComponent(of: path)
    return name == "." || name == ".." ? lastComponent(of: DurableFile.resolved(path)) : name
  }

  private static func unpack(
    _ path: String, _ name: String, _ limits: Limits, _ unpacker: (any ArchiveUnpacker)?,
    _ isCancelled: @escaping () -> Bool
  ) throws -> UnpackedArchive {
    let descriptor = path == "-" ? STDIN_FILENO : try open(path, name: name)
    defer { if path != "-" { close(descriptor) } }
    if let unpacker { return try unpacker.unpack(descriptor, name: name, limits: limits, isCancelled: isCancelled) }
    let contents = try ArchiveContents(reading: descriptor, name: name, limits: limits, isCancelled: isCancelled)
    return (contents, { _ in })
  }

  /// Opens a regular file that is not empty.
  private static func open(_ path: String, name: String) throws -> Int32 {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
    guard descriptor >= 0 else {
      let failure = DiskError("open", path)
      if [ELOOP, ENXIO].contains(failure.code) {
        throw BadBatch("read", name, "not a regular file", advice: UnknownBatch.advice)
      }
      throw failure
    }
    do {
      var status = stat()
      try check("fstat", path) { fstat(descriptor, &status) }
      guard status.st_mode & S_IFMT == S_IFREG else {
        throw BadBatch("read", name, "not a regular file", advice: UnknownBatch.advice)
      }
      guard status.st_size > 0 else { throw BadBatch("read", name, "an empty file", advice: UnknownBatch.advice) }
      return descriptor
    } catch {
      close(descriptor)
      throw error
    }
  }

  /// Longer suffixes come before those that they end in.
  private static let archiveSuffixes = [
    ".tar.gz", ".tar.zst", ".tgz", ".tar", ".webp.frames", ".frames.zst", ".frames.gz", ".frames", ".gz", ".zst",
  ]

  /// A file's name without the suffixes of archives.
  private static func stem(of name: String) -> String {
    let suffix = archiveSuffixes.first { name.lowercased().hasSuffix($0) }
    return String(name.dropLast(suffix?.count ?? 0))
  }

  /// Each of the frame's files, or the reason there is none.
  package func images(of frame: Frame) throws -> [FileContents] {
    // A file that is several layers is read once.
    var read: [String: FileContents] = [:]
    var left = limits.frameBytes
    return try zip(frame.paths, frame.look.raws).map { path, raw in
      let key = (raw == nil ? "image " : "pixels ") + path
      let file =
        try read[key] ?? contents.contents(of: path, limit: raw == nil ? limits.fileBytes : limits.frameBytes)
        ?? .refused("missing")
      read[key] = file
      guard case .bytes(let bytes) = file else { return file }
      left -= bytes.count
      return left >= 0 ? file : .refused("more than \(limits.frameBytes) bytes in all layers")
    }
  }
}

extension [RefusedFrame] {
  /// The list within limits: an archive can name more, and longer, than is useful.
  package func shortened(to limits: Limits) -> [RefusedFrame] {
    let said = prefix(limits.refusals).map {
      RefusedFrame(source: $0.source.shortened(to: limits.nameBytes), reason: $0.reason)
    }
    guard count > limits.refusals else { return said }
    return said + [RefusedFrame(source: "…", reason: "and \(count - limits.refusals) more")]
  }
}

extension DiskError {
  /// The batch's own fault, where it is one: its producer did not make it readable, or named a missing file.
  fileprivate func blaming(_ batch: String) -> (any Error)? {
    switch code {
    case ENOENT, ENOTDIR: BadBatch("read", batch, "no such file or directory", advice: "check the path")
    case ENAMETOOLONG: BadBatch("read", batch, "file name too long", advice: "check the path")
    // Another process holds a write lease (fcntl(2), F_SETLEASE); a non-blocking open does not wait for it.
    case EAGAIN: BadBatch("read", batch, BadBatch.leased, advice: "send it again when no other process uses it")
    case EACCES, EPERM: BadBatch("read", batch, BadBatch.denied, advice: "make it readable for the worker")
    default: nil
    }
  }
}

extension Batch {
  /// Sorts and checks the frames of a draft.
  package init(_ draft: BatchDraft, name: String, limits: Limits) throws {
    func bad(_ cause: String, _ advice: String) -> BadBatch {
      BadBatch("read", name, cause, advice: advice)
    }

    let sessionText = draft.session ?? ""
    guard let session = SessionID(sessionText) else {
      throw bad(
        sessionText.isEmpty ? "no session id" : "the session id \"\(sessionText.prefix(140))\" cannot be used",
        sessionText.isEmpty ? "name it with --session, or in batch.json" : SessionID.rule)
    }
    guard draft.frames.count <= limits.frames else {
      throw bad("\(draft.frames.count) frames, more than the limit of \(limits.frames)", "split the batch")
    }
    let (frames, refused) = Batch.inOrder(draft.frames, limits: limits)
    guard let last = frames.last else {
      let why = (draft.refused + refused).first.map { "; \($0.source): \($0.reason)" } ?? ""
      throw bad("no frame that can be used" + why, Self.adviceOnInstants(draft.frames, limits))
    }
    let intervalMs = draft.intervalMs ?? Batch.nominalInterval(of: frames.map(\.timeMs))
    guard (1...3_600_000).contains(intervalMs) else {
      throw bad("intervalMs \(intervalMs) is not between 1 and 3600000", "give the nominal capture interval")
    }
    let endMs = draft.endMs ?? last.timeMs + intervalMs
    guard endMs > last.timeMs, limits.instants.contains(endMs) else {
      throw bad(
        "endMs \(endMs) is not after the last capture \(last.timeMs)",
        "endMs is when the last frame stops being on screen, in unix milliseconds")
    }
    self.init(
      name: name, session: session, intervalMs: intervalMs, endMs: endMs, capture: draft.capture,
      isFinal: draft.isFinal, frames: frames, refused: (draft.refused + refused).shortened(to: limits),
      warnings: draft.warnings,
      metadata: draft.metadata)
  }

  /// The advice on instants in another unit than milliseconds.
  private static func adviceOnInstants(_ frames: [Frame], _ limits: Limits) -> String {
    guard let instant = frames.first?.timeMs, instant > 0 else {
      return "name frames by their capture, <unix ms>.jpg, or list them in batch.json"
    }
    let (scaled, isTooLarge) = instant.multipliedReportingOverflow(by: 1_000)
    let units = [
      ("seconds", isTooLarge ? 0 : scaled), ("microseconds", instant / 1_000), ("nanoseconds", instant / 1_000_000),
    ]
    guard let (unit, meant) = units.first(where: { limits.instants.contains($0.1) }) else {
      return "name frames by their capture, <unix ms>.jpg, or list them in batch.json"
    }
    return "\(instant) looks like \(unit); give milliseconds: \(meant)"
  }

  /// By capture; of frames at the same instant, the later one in the producer's order first.
  private static func inOrder(_ frames: [Frame], limits: Limits) -> ([Frame], [RefusedFrame]) {
    let (good, bad) = frames.enumerated().reduce(into: ([(offset: Int, element: Frame)](), [Frame]())) {
      result, frame in
      if limits.instants.contains(frame.element.timeMs) {
        result.0.append(frame)
      } else {
        result.1.append(frame.element)
      }
    }
    let sorted = good.sorted { ($0.element.timeMs, -$0.offset) < ($1.element.timeMs, -$1.offset) }
    let refused = bad.map {
      RefusedFrame(source: $0.source, reason: "instant \($0.timeMs) lies outside 2001 to 2100")
    }
    let (kept, jumped) = withoutJumps(sorted.map(\.element), limits: limits)
    return (kept, refused + jumped)
  }

  /// Refuses frames far from the largest group of frames: the clock was wrong then.
  private static func withoutJumps(_ frames: [Frame], limits: Limits) -> ([Frame], [RefusedFrame]) {
    var runs: [ArraySlice<Frame>] = []
    var start = 0
    for index in frames.indices
    where index + 1 == frames.count || frames[index + 1].timeMs - frames[index].timeMs > limits.jumpMs {
      runs.append(frames[start...index])
      start = index + 1
    }
    // Of equals, the first.
    guard let kept = runs.max(by: { ($0.count, -$0.startIndex) < ($1.count, -$1.startIndex) }) else { return ([], []) }
    let refused = runs.filter { $0.startIndex != kept.startIndex }.joined().map {
      RefusedFrame(
        source: $0.source,
        reason: "instant \($0.timeMs) is more than \(limits.jumpMs) ms from the others: a clock that jumped")
    }
    return (Array(kept), refused)
  }

  /// 1000, or the median distance of the captures where that lies outside 600–1600 ms.
  package static func nominalInterval(of instants: [Int64]) -> Int64 {
    let distances = zip(instants.dropFirst(), instants).map { $0 - $1 }.filter { $0 > 0 }.sorted()
    guard !distances.isEmpty else { return 1_000 }
    let middle = distances.count / 2
    let median = distances.count % 2 == 1 ? distances[middle] : (distances[middle - 1] + distances[middle]) / 2
    return (600...1_600).contains(median) ? 1_000 : min(median, 3_600_000)
  }
}
