// Files whose names contain the capture time: of screenpipe, omi, Frigate, OpenRecall, Pensieve, OSWorld, motion, and of recorders
// with ISO 8601 times. `--name-time` describes the names of any other recorder.

import FileSystem

package enum NamedTimesFormat: BatchFormat {
  package static let name = "times in names"

  /// The file names of a known recorder.
  private struct Naming {
    let patterns: [NamePattern]
    /// The suffix that the recorder writes; nil for any.
    var suffix: String?
    /// Whether files lie in a folder named by their day.
    var isInDayFolder = false
    /// The prefix of the session's key, which the pattern's group completes; nil if the group is the session.
    var keyPrefix: String?

    init(_ patterns: String..., suffix: String? = nil, isInDayFolder: Bool = false, keyPrefix: String? = nil) {
      self.patterns = patterns.compactMap { NamePattern($0) }
      (self.suffix, self.isInDayFolder, self.keyPrefix) = (suffix, isInDayFolder, keyPrefix)
    }

    init(_ patterns: [NamePattern]) { self.patterns = patterns }

    func match(_ path: String) -> (pattern: NamePattern, match: NamePattern.Match)? {
      let (stem, suffix) = NamedTimesFormat.parts(of: path)
      if let wanted = self.suffix, wanted != suffix { return nil }
      if isInDayFolder, !NamedTimesFormat.isInDayFolder(path) { return nil }
      for pattern in patterns { if let match = pattern.match(stem) { return (pattern, match) } }
      return nil
    }
  }

  private static let namings = [
    // screenpipe: a session a monitor.
    Naming("%Q_m%g", keyPrefix: "m"),
    // omi.
    Naming("%Q", isInDayFolder: true),
    // Frigate's preview cache: a session a camera.
    Naming("preview_%g-%s", suffix: "webp"),
    // OpenRecall, with and without (older versions) the monitor.
    Naming("%s_%g", suffix: "webp", keyPrefix: "m"),
    Naming("%s", suffix: "webp"),
    // Pensieve: a session a screen.
    Naming("screenshot-%Y%m%d-%H%M%S-of-%g", suffix: "webp", keyPrefix: "m"),
    // Trajectories of OSWorld's agents.
    Naming("step_%q_%Y%m%d@%H%M%S%f", "step_%q_%Y%m%d@%H%M%S"),
    Naming(ISOTime.patterns),
    // motion: the event, the time, the number within the second.
    Naming("%*-%Y%m%d%H%M%S-%q"),
  ]

  /// Number of names that decide the naming of a batch.
  private static let sampleSize = 16

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    let names = source.contents.names
    if case .names(let pattern)? = source.options.times { return try drafts(of: names, Naming([pattern]), source) }
    let sample = names.prefix(sampleSize)
    let counts = namings.map { naming in sample.count { naming.match($0) != nil } }
    guard let most = counts.max(), most > 0, let index = counts.firstIndex(of: most) else { return nil }
    return try drafts(of: names, namings[index], source)
  }

  /// A file with the time in its name.
  private struct NamedFile {
    let path: String
    let time: NamedTime
    var instant: Int64?
    var note: String?
  }

  private static func drafts(of names: [String], _ naming: Naming, _ source: BatchSource) throws -> [BatchDraft] {
    var groups: [String?: [NamedFile]] = [:]
    var refused: [RefusedFrame] = []
    let shown = naming.patterns.first?.description ?? ""
    for path in names {
      guard let (pattern, match) = naming.match(path) else {
        refused.append(RefusedFrame(source: path, reason: "the name is not \(shown), a file's suffix aside"))
        continue
      }
      if pattern.needsZone && source.options.timeZone == nil {
        throw BadBatch(
          "read", source.name,
          "the name of \(lastComponent(of: path).shortened(to: 80)) tells local time, not its zone",
          advice: "say where it was captured with --time-zone, for example --time-zone Europe/Berlin")
      }
      guard let time = NamedTime(match, zone: source.options.timeZone) else {
        refused.append(RefusedFrame(source: path, reason: "the name tells a time that does not exist"))
        continue
      }
      groups[match.group, default: []].append(NamedFile(path: path, time: time))
    }
    var drafts = groups.sorted { ($0.key ?? "") < ($1.key ?? "") }.map { group, files in
      draft(of: files, group: group, naming, source)
    }
    if drafts.isEmpty { drafts = [BatchDraft()] }
    drafts[0].refused += refused
    return drafts
  }

  private static func draft(
    of files: [NamedFile], group: String?, _ naming: Naming, _ source: BatchSource
  ) -> BatchDraft {
    var draft = BatchDraft()
    if let prefix = naming.keyPrefix { draft.key = group.map { prefix + $0 } } else { draft.session = group }
    // These recorders skip screens without a change.
    draft.defaultCapture = .onChange
    let zone = source.options.timeZone?.description ?? "its zone"
    for file in spread(resolved(files)) {
      if let instant = file.instant {
        var frame = Frame(source: lastComponent(of: file.path), path: file.path, timeMs: instant)
        frame.note = file.note
        draft.frames.append(frame)
      } else {
        let reason =
          file.time.instants.isEmpty
          ? "clocks in \(zone) skipped the time in its name"
          : "clocks in \(zone) showed the time in its name twice, and no sequence tells which it is"
        draft.refused.append(RefusedFrame(source: file.path, reason: reason))
      }
    }
    return draft
  }

  /// Chooses between the two instants of a time that clocks showed twice, if the order of the sequence allows only one of them.
  private static func resolved(_ files: [NamedFile]) -> [NamedFile] {
    var files = files
    guard files.contains(where: { $0.time.instants.count > 1 }) else {
      for index in files.indices { files[index].instant = files[index].time.instants.first }
      return files
    }
    let timed = files.indices.filter { !files[$0].time.instants.isEmpty }
    let sequence = timed.compactMap { files[$0].time.sequence }
    for index in timed where files[index].time.instants.count == 1 {
      files[index].instant = files[index].time.instants[0]
    }
    guard sequence.count == timed.count, Set(sequence).count == timed.count else { return files }
    let order = timed.sorted { (files[$0].time.sequence ?? 0) < (files[$1].time.sequence ?? 0) }
    guard let earliest = monotonic(order.map { files[$0].time.instants }),
      let latest = monotonic(order.reversed().map { files[$0].time.instants.reversed().map { -$0 } })
    else { return files }
    for (index, (early, late)) in zip(order, zip(earliest, latest.reversed())) where early == -late {
      files[index].instant = early
    }
    return files
  }

  /// Returns the lowest choices that do not decrease; nil if there are none.
  private static func monotonic(_ choices: [[Int64]]) -> [Int64]? {
    var chosen: [Int64] = []
    for each in choices {
      guard let next = each.first(where: { $0 >= chosen.last ?? .min }) else { return nil }
      chosen.append(next)
    }
    return chosen
  }

  /// Spreads the frames of each second over it, in the order of their sequence, if their names contain no fraction of it.
  private static func spread(_ files: [NamedFile]) -> [NamedFile] {
    var files = files
    let seconds = Dictionary(
      grouping: files.indices.filter { files[$0].time.isWholeSecond && files[$0].time.sequence != nil }
    ) {
      files[$0].instant
    }
    for (instant, indexes) in seconds where indexes.count > 1 {
      guard let instant else { continue }
      let order = indexes.sorted { (files[$0].time.sequence ?? 0) < (files[$1].time.sequence ?? 0) }
      for (place, index) in order.enumerated() {
        files[index].instant = instant + Int64(place * 1_000 / order.count)
        files[index].note = "frame \(place + 1) of \(order.count) in its second, which were spread over it"
      }
    }
    return files
  }

  /// Returns a file's name without its suffix, and the suffix in lower case. Digits behind a point are no suffix.
  static func parts(of path: String) -> (stem: Substring, suffix: String) {
    let name = lastComponent(of: path)
    guard let point = name.lastIndex(of: "."), case let suffix = name[point...].dropFirst(),
      (1...5).contains(suffix.utf8.count), suffix.first?.isLetter == true,
      suffix.allSatisfy({ $0.isLetter || $0.isNumber })
    else { return (name[...], "") }
    return (name[..<point], suffix.lowercased())
  }

  /// Whether a file lies in a folder `YYYY-MM-DD`.
  private static func isInDayFolder(_ path: String) -> Bool {
    let folders = path.split(separator: "/").dropLast()
    return folders.last?.split(separator: "-", omittingEmptySubsequences: false).map(\.utf8.count) == [4, 2, 2]
  }
}
