// The frames of one session of a batch, and the bytes of their files.

import FileSystem

/// One session of a batch: its frames, and the bytes of their files.
package struct BatchReader: Sendable {
  package internal(set) var batch: Batch
  /// The name of the batch's format.
  package let format: String
  package let contents: any BatchContents
  package let limits: Limits

  /// Returns the last component of a path; `.` and `..` are resolved first.
  package static func name(of path: String) -> String {
    let name = lastComponent(of: path)
    return name == "." || name == ".." ? lastComponent(of: DurableFile.resolved(path)) : name
  }

  /// Returns each of the frame's files, or the reason why a file cannot be used.
  package func images(of frame: Frame) throws -> [FrameFile] {
    // A file that is several layers is read once.
    var read: [String: FrameFile] = [:]
    var total = 0
    let files: [FrameFile] = try zip(frame.paths, frame.look.raws).map { path, raw in
      let key = (raw == nil ? "image " : "pixels ") + path
      let file = try read[key] ?? self.file(path, isImage: raw == nil)
      read[key] = file
      if case .bytes(let bytes) = file { total += bytes.count }
      return file
    }
    guard total > limits.frameBytes else { return files }
    let remedy = total <= Limits.maximumBytes ? Refusal.Remedy.raise(LimitAdvice([.frameBytes: total])) : nil
    var left = limits.frameBytes
    return files.map { file in
      guard case .bytes(let bytes) = file else { return file }
      left -= bytes.count
      return left >= 0 ? file : .refused(Refusal("more than \(limits.frameBytes) bytes in all layers", remedy))
    }
  }

  private func file(_ path: String, isImage: Bool) throws -> FrameFile {
    switch try contents.contents(of: path, limit: isImage ? limits.fileBytes : limits.frameBytes) {
    case .bytes(let bytes)?: .bytes(bytes)
    case .refused(let refusal)?: .refused(Refusal(refusal, isImage: isImage, limits))
    case nil: .refused("missing")
    }
  }
}

extension [RefusedFrame] {
  /// Returns the list cut to the limits, because an archive can have very many and very long names.
  package func shortened(to limits: Limits) -> [RefusedFrame] {
    let said = prefix(limits.refusals).map {
      RefusedFrame(source: $0.source.shortened(to: limits.nameBytes), reason: $0.reason, kind: $0.kind)
    }
    guard count > limits.refusals else { return said }
    return said + [RefusedFrame(source: "…", reason: "and \(count - limits.refusals) more")]
  }
}

extension Batch {
  /// Sorts and checks the frames of a draft.
  ///
  /// - Parameters:
  ///   - session: the name of the session; nil if none is known.
  ///   - isLoose: whether the frames are loose pictures without a description, which can be split.
  init(
    _ draft: BatchDraft, of source: BatchSource, session: String?, name: String, limits: Limits, isLoose: Bool
  ) throws {
    let options = source.options
    func bad(_ cause: String, _ advice: String) -> BadBatch {
      BadBatch("read", name, cause, advice: advice)
    }

    let sessionText = session ?? ""
    guard let session = SessionID(sessionText) else {
      let fault = draft.session == nil ? source.sessionName?.reading?.fault(sessionText) : nil
      throw bad(
        fault
          ?? (sessionText.isEmpty ? "no session id" : "the session id \"\(sessionText.prefix(140))\" cannot be used"),
        sessionText.isEmpty
          ? "name it with --session, or in batch.json"
          : draft.session == nil ? "encode it alone with --session, or rename it; \(SessionID.rule)" : SessionID.rule)
    }
    let isSplit = isLoose && limits.splitsFolders
    let most =
      isSplit ? max(limits.frames, Limits.ofFolder.frames) : draft.videos == nil ? limits.frames : limits.segments
    guard draft.frames.count <= most else {
      throw bad(
        "\(draft.frames.count) frames, more than the limit of \(most)",
        isSplit
          ? Limits.adviceOnFolders : Limits.advice("frames", draft.frames.count, most: 100_000, isLoose: isLoose))
    }
    let order =
      try draft.videos == nil
      ? FrameOrder(draft, in: source.contents, limits: limits) : FrameOrder(ofVideos: draft.frames, limits)
    let frames = order.frames
    guard let last = frames.last else {
      let why = (draft.refused + order.refused).first { !$0.isCopy }.map { "; \($0.source): \($0.reason)" } ?? ""
      if case .names? = options.times, draft.frames.isEmpty {
        let advice = NameAdvice(for: source, limits: limits).remedy
        throw bad(
          "no frame that can be used" + why,
          advice ?? "describe the whole name without its suffix; %* stands for any text")
      }
      let advice = draft.frames.isEmpty ? source.contents.adviceOnRefused : nil
      throw bad("no frame that can be used" + why, advice ?? Self.adviceOnInstants(draft.frames, source, limits))
    }
    let intervalMs = draft.intervalMs ?? options.intervalMs ?? Batch.nominalInterval(of: frames.map(\.timeMs))
    guard Limits.intervals.contains(intervalMs) else {
      throw bad("intervalMs \(intervalMs) is not between 1 and 3600000", "give the nominal capture interval")
    }
    // The distances of a recorder that captures on change say nothing about its last picture.
    let isGuessed = draft.capture == .onChange && draft.intervalMs == nil && options.intervalMs == nil
    let holdMs = isGuessed ? min(intervalMs, 1_000) : intervalMs
    let endMs = draft.endMs ?? last.timeMs + holdMs
    guard endMs > last.timeMs, limits.instants.contains(endMs) else {
      throw bad(
        "endMs \(endMs) is not after the last capture \(last.timeMs)",
        "endMs is when the last frame stops being on screen, in unix milliseconds")
    }
    var list = draft.pointers
    // Nobody knows when the masks of a frame with a wrong time were on screen.
    if order.hasLostMasks {
      list.omitAll("a frame with masks has a time that cannot be used")
    }
    let pointers = PointerTrack(&list, blindMs: draft.blindMs, limits: limits)
    var labels = draft.labels
    let usable = labels.takeSorted(within: limits.instants)
    self.init(
      name: name, session: session, intervalMs: intervalMs, endMs: endMs,
      capture: draft.capture ?? options.capture ?? draft.defaultCapture, isFinal: draft.isFinal ?? options.isFinal,
      frames: frames, refused: (draft.refused + order.refused).shortened(to: limits),
      warnings: draft.warnings + order.warnings + [list.warning, labels.warning].compactMap { $0 },
      metadata: draft.metadata, pointers: pointers, traceParent: draft.traceParent, statesCapture: draft.capture != nil)
    leftOut.ofSession = order.refused.count
    timeZone = draft.timeZone ?? options.timeZone?.description
    (isEndOpen, clockOffsetMs) = (draft.isEndOpen, draft.clockOffsetMs)
    (pages, videos) = (draft.pages, draft.videos)
    self.labels = usable
    // Events are not divided between batches.
    if isSplit || draft.grows, pointers.events.isEmpty {
      folder = GrowingFolder(shownMs: frames[0].timeMs..<endMs)
    }
  }

  /// Returns the advice for instants in a unit other than milliseconds.
  private static func adviceOnInstants(_ frames: [Frame], _ source: BatchSource, _ limits: Limits) -> String {
    guard let frame = frames.first, case let instant = frame.timeMs, instant > 0 else {
      return "name frames by their capture, <unix ms>.jpg, or list them in batch.json"
    }
    if frames.allSatisfy({ $0.timeMs < 10_000_000 }) {
      return (NameAdvice(for: source, limits: limits).numbering.map { $0 + "; else " } ?? "")
        + "name frames by their capture, <unix ms>.jpg"
    }
    let (scaled, isTooLarge) = instant.multipliedReportingOverflow(by: 1_000)
    let units = [
      ("seconds", isTooLarge ? 0 : scaled), ("microseconds", instant.roundedDivision(by: 1_000)),
      ("nanoseconds", instant.roundedDivision(by: 1_000_000)), ("ticks of .NET", CivilTime.unixMs(ofTicks: instant)),
    ]
    guard let (unit, meant) = units.first(where: { limits.instants.contains($0.1) }) else {
      return "name frames by their capture, <unix ms>.jpg, or list them in batch.json"
    }
    // The names of plain frames are numbers alone.
    let isPlain = frame.paths.first.map(PlainFormat.instant(ofName:)) == instant
    let fields = ["seconds": "%s", "ticks of .NET": "%Q"]
    let pattern = isPlain ? fields[unit].map { ", or read the names with --name-time \($0)" } ?? "" : ""
    return "\(instant) looks like \(unit); give milliseconds: \(meant)" + pattern
  }

  /// Returns 1000 if the median distance of the captures is between 600 and 1600 ms; else the median, at most an hour.
  package static func nominalInterval(of instants: [Int64]) -> Int64 {
    let distances = zip(instants.dropFirst(), instants).map { $0 - $1 }.filter { $0 > 0 }.sorted()
    guard !distances.isEmpty else { return 1_000 }
    let middle = distances.count / 2
    let median = distances.count % 2 == 1 ? distances[middle] : (distances[middle - 1] + distances[middle]) / 2
    return (600...1_600).contains(median) ? 1_000 : min(median, Limits.intervals.upperBound)
  }
}
