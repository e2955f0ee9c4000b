// The inputs of one call, in the order in which the user names them. Numbered pictures without times go on where the input before
// ended. The same pictures twice are one input. Other pictures for the same time are refused: nothing is left out in silence.

import FileSystem

/// The inputs of a call that are placed so far.
package struct InputRow {
  /// The place of an input.
  package enum Placement {
    case shown(BatchSessions)
    /// It has the same pictures as an input before.
    case same(asInput: String)
  }

  /// The rule for inputs that show other pictures for the same time.
  package enum Overlaps: Sendable, Equatable {
    /// The output refuses them.
    case left
    /// - Parameter maxHoldMs: the maximum hold of captures at an interval.
    case refused(maxHoldMs: Int64)
  }

  /// An input without its pictures: a call may have thousands, each of thousands of pictures.
  private struct Input {
    let path: String
    let limits: Limits
    /// Of the names and times of its pictures.
    let outline: Int
    let firstFile: String
    /// The digest of its pictures; nil for a folder, which can be read again.
    let digest: String?
    let isNumbered: Bool
    let intervalMs: Int64
    let shown: [Range<Int64>]
  }

  private let options: InputOptions
  private let numbers: (startMs: Int64, rate: CaptureRate)?
  /// Whether nobody states the start of numbered pictures.
  private let isWithoutClock: Bool
  private let overlaps: Overlaps
  private var inputs: [Input] = []
  /// By session: the number behind the last picture.
  private var next: [SessionID: Int64] = [:]
  /// The first numbered input that cannot be used: nobody knows where the next one begins.
  private var lost: String?

  /// - Parameters:
  ///   - isWithoutClock: whether nobody states the start of numbered pictures.
  package init(_ options: InputOptions, isWithoutClock: Bool, overlaps: Overlaps) {
    self.options = options
    if case .numbers(let startMs, let rate, _)? = options.times { numbers = (startMs, rate) } else { numbers = nil }
    self.isWithoutClock = isWithoutClock
    self.overlaps = overlaps
  }

  /// Whether the place of an input depends on those before.
  package var isOrdered: Bool { numbers != nil || overlaps != .left }

  /// Notes an input that cannot be read.
  package mutating func lose(_ path: String) { if numbers != nil { lost = lost ?? path } }

  /// Places the next input. One of several sessions stays as it is.
  ///
  /// - Throws: ``BadBatch`` if the row has no place for it.
  package mutating func place(_ input: BatchSessions, named path: String) throws -> Placement {
    guard isOrdered, input.readers.count == 1, let reader = input.readers.first else { return .shown(input) }
    // A `batch.json` without times leaves them to the numbers of its files.
    let isNumbered =
      numbers.map { reader.format == NumberedFormat.name || reader.batch.frames.first?.timeMs == $0.startMs } ?? false
    guard isNumbered || overlaps != .left else { return .shown(input) }
    if isNumbered, let lost {
      throw bad(path, "it goes on where \(lost) ends, which cannot be used", "repair that one first, or leave it out")
    }
    var known: Input?
    do {
      known = try same(as: reader, isNumbered: isNumbered)
      if known == nil { try requirePlace(for: reader.batch, isNumbered, path) }
    } catch {
      lose(path)
      throw error
    }
    if let known { return .same(asInput: known.path) }
    inputs.append(
      Input(
        path: path, limits: reader.limits, outline: reader.batch.outline, firstFile: try reader.firstFile(),
        digest: try reader.contents is DirectoryContents ? nil : BatchDigest.of(reader), isNumbered: isNumbered,
        intervalMs: reader.batch.intervalMs, shown: isNumbered ? [] : shown(reader.batch)))
    guard isNumbered, let numbers else { return .shown(input) }
    let first = next[reader.batch.session, default: 0]
    guard let placed = reader.batch.counted(from: first, at: numbers, reader.limits) else {
      throw bad(path, "its pictures come too late: \(first) are before it", "make films of fewer pictures")
    }
    next[reader.batch.session] = placed.next
    return .shown(BatchSessions(name: input.name, readers: [reader.reading(placed.batch)], refused: input.refused))
  }

  private func bad(_ path: String, _ cause: String, _ advice: String) -> BadBatch {
    BadBatch("place", path, cause, advice: advice)
  }

  // MARK: - The same pictures

  /// Returns the input before with the same pictures. All files are only read where all names and the first file are equal.
  private func same(as reader: BatchReader, isNumbered: Bool) throws -> Input? {
    let outline = reader.batch.outline
    let alike = inputs.filter { $0.isNumbered == isNumbered && $0.outline == outline }
    guard !alike.isEmpty else { return nil }
    let firstFile = try reader.firstFile()
    var own: String?
    for input in alike where input.firstFile == firstFile {
      own = try own ?? BatchDigest.of(reader)
      if try digest(of: input) == own { return input }
    }
    return nil
  }

  private func digest(of input: Input) throws -> String? {
    if let digest = input.digest { return digest }
    return try BatchSessions(reading: input.path, options: options, limits: input.limits).readers.first.map {
      try BatchDigest.of($0)
    }
  }

  // MARK: - Other pictures for the same time

  private func requirePlace(for batch: Batch, _ isNumbered: Bool, _ path: String) throws(BadBatch) {
    guard case .refused = overlaps else { return }
    if isWithoutClock, let other = inputs.first(where: { $0.isNumbered != isNumbered }) {
      let (dated, numbered) = isNumbered ? (other.path, path) : (path, other.path)
      throw bad(
        path, "\(dated) has times, and \(numbered) only numbers", "say with --start when its first picture was captured"
      )
    }
    guard !isNumbered else { return }
    let own = shown(batch)
    for input in inputs where !input.isNumbered {
      let seamMs = (max(batch.intervalMs, input.intervalMs) - 1) / 2
      guard let both = Self.overlap(own, input.shown, longerThan: seamMs) else { continue }
      throw .otherPictures(path, input.path, atMs: both)
    }
  }

  /// Returns the times in which a batch shows its pictures.
  private func shown(_ batch: Batch) -> [Range<Int64>] {
    guard case .refused(let maxHoldMs) = overlaps else { return [] }
    var ranges: [Range<Int64>] = []
    for (index, frame) in batch.frames.enumerated() {
      let untilMs = index + 1 < batch.frames.count ? batch.frames[index + 1].timeMs : batch.endMs
      let endMs = batch.capture == .onChange ? untilMs : min(untilMs, frame.timeMs + maxHoldMs)
      if let last = ranges.last, last.upperBound == frame.timeMs {
        ranges[ranges.count - 1] = last.lowerBound..<max(endMs, last.upperBound)
      } else if endMs > frame.timeMs {
        ranges.append(frame.timeMs..<endMs)
      }
    }
    return ranges
  }

  /// Returns where two lists of ranges, each in order, have more than a length in common; nil if they have not.
  private static func overlap(
    _ some: [Range<Int64>], _ others: [Range<Int64>], longerThan lengthMs: Int64
  ) -> Int64? {
    var (one, other) = (0, 0)
    while one < some.count, other < others.count {
      let startMs = max(some[one].lowerBound, others[other].lowerBound)
      let endMs = min(some[one].upperBound, others[other].upperBound)
      if endMs - startMs > lengthMs { return startMs }
      if some[one].upperBound < others[other].upperBound { one += 1 } else { other += 1 }
    }
    return nil
  }
}

extension BadBatch {
  /// The error of an input that shows other pictures than another one for the same time.
  package static func otherPictures(_ path: String, _ other: String, atMs timeMs: Int64) -> BadBatch {
    BadBatch(
      "place", path, "it shows other pictures than \(other) for the same time, from \(timeMs) on",
      advice: "make a film of each")
  }
}

extension BatchReader {
  /// Returns the digest of the first frame's files.
  fileprivate func firstFile() throws -> String {
    guard let first = batch.frames.first else { return "" }
    var digests = FrameDigests(of: batch.session)
    return digests.digest(of: first, try images(of: first)).identity
  }
}

extension Batch {
  /// The hash of the names and times of its frames, in this process.
  fileprivate var outline: Int {
    var hasher = Hasher()
    hasher.combine(session)
    for frame in frames {
      hasher.combine(frame.timeMs)
      hasher.combine(frame.source)
    }
    return hasher.finalize()
  }

  /// Returns numbered pictures whose first one has another number than 0, and the number behind the last one.
  ///
  /// - Returns: nil if an instant is too late.
  func counted(
    from first: Int64, at numbers: (startMs: Int64, rate: CaptureRate), _ limits: Limits
  ) -> (batch: Batch, next: Int64)? {
    var (batch, next) = (self, first)
    let rate = numbers.rate
    for (index, frame) in frames.enumerated() {
      guard let number = rate.number(atOffsetMs: frame.timeMs - numbers.startMs),
        let offsetMs = rate.offsetMs(of: first + number),
        limits.instants.contains(numbers.startMs + offsetMs)
      else { return nil }
      batch.frames[index] = frame.captured(atMs: numbers.startMs + offsetMs)
      next = first + number + 1
    }
    guard first > 0 else { return (self, next) }
    guard let last = batch.frames.last else { return nil }
    batch.endMs = last.timeMs + endMs - (frames.last?.timeMs ?? endMs)
    guard limits.instants.contains(batch.endMs) else { return nil }
    if folder != nil { batch.folder = GrowingFolder(shownMs: batch.frames[0].timeMs..<batch.endMs) }
    return (batch, next)
  }
}

extension Frame {
  fileprivate func captured(atMs timeMs: Int64) -> Frame {
    Frame(source: source, paths: paths, timeMs: timeMs, look: look, note: note)
  }
}
