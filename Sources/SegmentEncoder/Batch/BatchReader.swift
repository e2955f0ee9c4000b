// From a path to a batch: open the container, find the format that knows it, check what it says.

import Glibc

/// What a format found in a container, before it is put in order and checked.
struct BatchDraft {
  var session: String?
  var intervalMs: Int64?
  var endMs: Int64?
  var capture = Batch.Capture.interval
  var isFinal = false
  /// In the producer's order.
  var frames: [Frame] = []
  var refused: [RefusedFrame] = []
  var metadata = JSONValue.object([:])
}

/// One producer's way of writing a batch.
protocol BatchFormat {
  /// - Returns: nil when the container holds something else.
  static func read(_ contents: any BatchContents, limits: Limits) throws -> BatchDraft?
}

/// A batch and the bytes of its frames.
public struct OpenBatch {
  public let batch: Batch
  let contents: any BatchContents
  let limits: Limits

  private static var formats: [any BatchFormat.Type] { [NativeFormat.self, PlainFormat.self] }

  /// Reads a batch: a directory, or an archive.
  ///
  /// - Parameters:
  ///   - path: where it lies; `-` reads an archive from standard input.
  ///   - session: the session of a batch that does not name its own; else the batch's name up to the first `@`.
  /// - Throws: ``BadBatch`` for anything that is no batch, ``DiskError`` when reading fails.
  public init(reading path: String, session: String? = nil, limits: Limits = Limits()) throws {
    let name = path == "-" ? "stdin" : Self.name(of: path)
    let contents: any BatchContents
    let isArchive = path == "-" || !DurableFile.isDirectory(path)
    if path == "-" {
      contents = try ArchiveContents(reading: STDIN_FILENO, name: name, limits: limits)
    } else if isArchive {
      contents = try Self.archive(at: path, name: name, limits: limits)
    } else {
      do {
        contents = try DirectoryContents(opening: path, limits: limits)
      } catch let failure as DiskError {
        throw failure.blaming(name) ?? failure
      }
    }
    for format in Self.formats {
      if var draft = try format.read(contents, limits: limits) {
        draft.refused = contents.refused + draft.refused
        draft.session =
          draft.session ?? session ?? (path == "-" ? nil : Self.session(ofName: name, isArchive: isArchive))
        self.batch = try Batch(draft, name: name, limits: limits)
        self.contents = contents
        self.limits = limits
        return
      }
    }
    if let first = contents.refused.first {
      throw BadBatch("read", name, "no frames; \(first.source) is \(first.reason)", advice: Self.advice)
    }
    throw BadBatch("read", name, contents.names.isEmpty ? "nothing in it" : "no known format", advice: Self.advice)
  }

  /// The last component, of `.` and `..` too.
  static func name(of path: String) -> String {
    let name = lastComponent(of: path)
    return name == "." || name == ".." ? lastComponent(of: DurableFile.resolved(path)) : name
  }

  private static let advice = "send frames named <unix ms>.jpg or .png, or frames and a batch.json"

  private static func archive(at path: String, name: String, limits: Limits) throws -> ArchiveContents {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
    guard descriptor >= 0 else {
      let failure = DiskError("open", path)
      if [ELOOP, ENXIO].contains(failure.code) { throw BadBatch("read", name, "not a regular file", advice: advice) }
      throw failure.blaming(name) ?? failure
    }
    defer { close(descriptor) }
    var status = stat()
    try check("fstat", path) { fstat(descriptor, &status) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw BadBatch("read", name, "not a regular file", advice: advice)
    }
    guard status.st_size > 0 else { throw BadBatch("read", name, "an empty file", advice: advice) }
    return try ArchiveContents(reading: descriptor, name: name, limits: limits)
  }

  private static let archiveSuffixes = [".tar.gz", ".tar.zst", ".tgz", ".tar"]

  private static func session(ofName name: String, isArchive: Bool) -> String {
    let suffix = isArchive ? archiveSuffixes.first { name.lowercased().hasSuffix($0) } : nil
    let stem = name.dropLast(suffix?.count ?? 0)
    return String(stem.prefix { $0 != "@" })
  }

  /// The frame's image file, or the reason there is none.
  func image(of frame: Frame) throws -> FileContents {
    try contents.contents(of: frame.path, limit: limits.fileBytes) ?? .refused("missing")
  }
}

extension [RefusedFrame] {
  /// What is said of them, within limits: an archive can name more, and longer, than anybody wants to read.
  func shortened(to limits: Limits) -> [RefusedFrame] {
    let said = prefix(limits.refusals).map {
      RefusedFrame(source: $0.source.shortened(to: limits.nameBytes), reason: $0.reason)
    }
    guard count > limits.refusals else { return said }
    return said + [RefusedFrame(source: "…", reason: "and \(count - limits.refusals) more")]
  }
}

extension DiskError {
  /// The batch's own fault, where it is one: whoever made it forgot to make it readable, or named what is not there.
  fileprivate func blaming(_ batch: String) -> (any Error)? {
    switch code {
    case ENOENT: BadBatch("read", batch, "no such file or directory", advice: "check the path")
    case EACCES, EPERM: BadBatch("read", batch, "permission denied", advice: "make it readable for the worker")
    default: nil
    }
  }
}

extension Batch {
  /// Puts a draft in order and checks it.
  init(_ draft: BatchDraft, name: String, limits: Limits) throws {
    func bad(_ cause: String, _ advice: String) -> BadBatch { BadBatch("read", name, cause, advice: advice) }

    let sessionText = draft.session ?? ""
    guard let session = SessionID(sessionText) else {
      throw bad(
        sessionText.isEmpty ? "no session id" : "the session id \"\(sessionText.prefix(140))\" cannot be used",
        SessionID.rule)
    }
    guard draft.frames.count <= limits.frames else {
      throw bad("\(draft.frames.count) frames, more than the limit of \(limits.frames)", "split the batch")
    }
    let (frames, refused) = Batch.inOrder(draft.frames, limits: limits)
    guard let last = frames.last else {
      let why = (draft.refused + refused).first.map { "; \($0.source): \($0.reason)" } ?? ""
      throw bad("no frame with an instant" + why, "name frames by their capture in unix milliseconds, or list them")
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
      metadata: draft.metadata)
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
    return (sorted.map(\.element), refused)
  }

  /// 1000, or the median distance of the captures where that lies outside 600–1600 ms.
  static func nominalInterval(of instants: [Int64]) -> Int64 {
    let distances = zip(instants.dropFirst(), instants).map { $0 - $1 }.filter { $0 > 0 }.sorted()
    guard !distances.isEmpty else { return 1_000 }
    let middle = distances.count / 2
    let median = distances.count % 2 == 1 ? distances[middle] : (distances[middle - 1] + distances[middle]) / 2
    return (600...1_600).contains(median) ? 1_000 : min(median, 3_600_000)
  }
}
