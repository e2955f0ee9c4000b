// Files whose names contain the capture time: those of known recorders, and any others that `--name-time` describes.

import FileSystem

package enum NamedTimesFormat: BatchFormat {
  package static let name = "times in names"

  /// Reads names with their folders. The batch itself may be the folder that tells the day.
  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    let (all, top) = (source.contents.names, source.contents.topNames)
    if case .names(let pattern)? = source.options.times {
      let naming = Naming(describedBy: pattern)
      // As in the plain form, files in folders are left out where others lie beside the folders.
      let isFlat = !source.isDescribed && top.contains { naming.match($0, in: source.name) != nil }
      return try drafts(of: isFlat ? top : all, naming, source, limits)
    }
    if !source.isDescribed, !top.isEmpty {
      // Most batches.
      if top.allSatisfy(PlainFormat.isUnixMilliseconds) { return nil }
      if let naming = naming(of: top, in: source) { return try drafts(of: top, naming, source, limits) }
      if PictureNames.areMostly(top.count { PlainFormat.instant(ofName: $0) != nil }, of: top) { return nil }
    }
    return try naming(of: all, in: source).map { try drafts(of: all, $0, source, limits) }
  }

  /// Returns the naming that reads the most names; nil if it reads less than half of the pictures, or not more than the plain form.
  private static func naming(of names: [String], in source: BatchSource) -> Naming? {
    let shapes = NameShapes(of: names)
    let counts = Naming.known.map { naming in shapes.count { naming.match($0, in: source.name) != nil } }
    guard let most = counts.max(), most > names.count(where: PlainFormat.isUnixMilliseconds),
      source.isRead(by: most, of: names), let index = counts.firstIndex(of: most)
    else { return nil }
    return Naming.known[index]
  }

  private static func drafts(
    of names: [String], _ naming: Naming, _ source: BatchSource, _ limits: Limits
  ) throws -> [BatchDraft] {
    var groups: [String?: [NamedFile]] = [:]
    var refused: [RefusedFrame] = []
    var texts: [String: String] = [:]
    let shown = naming.patterns.first?.description ?? ""
    for path in names {
      guard let (_, match) = naming.match(path, in: source.name) else {
        refused.append(
          RefusedFrame(source: path, reason: "the name is not \(shown), a file's suffix aside", kind: .otherName))
        continue
      }
      if match.needsZone && source.options.timeZone == nil {
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
      if let text = match.text { texts[path] = text }
    }
    let sources = groups.values.map { files in
      InterleavedSources(files.compactMap { file in file.time.instants.first.map { ($0, texts[file.path] ?? "") } })
    }
    let folders = try groups.values.compactMap { files in
      try InterleavedSources.folders(
        of: files.compactMap { file in file.time.instants.first.map { (file.path, $0) } }, source, limits)
    }
    if naming.isKnown, let (cause, advice) = folders.first {
      throw BadBatch("read", source.name, cause, advice: advice)
    }
    if naming.tellsSource, let mixed = sources.first(where: { !$0.texts.isEmpty }) {
      throw BadBatch("read", source.name, mixed.cause, advice: mixed.advice(for: naming.patterns, names, source))
    }
    var drafts = groups.sorted { ($0.key ?? "") < ($1.key ?? "") }.map { group, files in
      draft(of: files, group: group, naming, source)
    }
    if drafts.isEmpty { drafts = [BatchDraft()] }
    drafts[0].refused += refused
    drafts[0].warnings += folders.map { "\($0.cause), and become one film; \($0.advice)" }
    if !naming.tellsSource {
      // A number in the names would not tell the sources apart.
      if sources.contains(where: { !$0.texts.isEmpty }) {
        for index in drafts.indices { drafts[index].adviceOnEqualInstants = nil }
      }
      drafts[0].warnings += sources.filter { !$0.texts.isEmpty }.map {
        "\($0.cause), and become one film; \($0.advice(for: naming.patterns, names, source))"
      }
    }
    return drafts
  }

  private static func draft(
    of files: [NamedFile], group: String?, _ naming: Naming, _ source: BatchSource
  ) -> BatchDraft {
    var draft = BatchDraft()
    if let prefix = naming.keyPrefix { draft.key = group.map { prefix + $0 } } else { draft.session = group }
    if files.contains(where: { $0.time.isWholeSecond && $0.time.sequence == nil }) {
      draft.adviceOnEqualInstants =
        "names that tell whole seconds need a number that orders the pictures of a second: read it with %q in --name-time"
    }
    // These recorders skip screens without a change.
    draft.defaultCapture = .onChange
    draft.warnings = warnings(on: add(files, to: &draft, source), naming.patterns)
    return draft
  }

  /// Adds files to a draft: those with one instant as frames, the others as refused.
  ///
  /// - Returns: the files with their instants, in the order of their sequence.
  @discardableResult
  static func add(_ files: [NamedFile], to draft: inout BatchDraft, _ source: BatchSource) -> [NamedFile] {
    let zone = source.options.timeZone?.description ?? "its zone"
    let files = ordered(spread(resolved(files, in: source.contents)), &draft)
    for file in files {
      if let instant = file.instant {
        var frame = Frame(source: lastComponent(of: file.path), path: file.path, timeMs: instant)
        frame.note = file.note
        draft.frames.append(frame)
      } else {
        draft.refused.append(
          RefusedFrame(source: file.path, reason: reason(toRefuse: file, in: zone, source.contents)))
      }
    }
    return files
  }

  /// Returns why a local time has no instant, or two.
  private static func reason(toRefuse file: NamedFile, in zone: String, _ contents: any BatchContents) -> String {
    if file.time.isAfterRules {
      return "this system's rules of \(zone) end before its time; use an offset, such as --time-zone +01:00"
    }
    if file.time.instants.isEmpty { return "clocks in \(zone) skipped its time" }
    return "clocks in \(zone) showed its time twice, and no sequence tells which it is; "
      + remedy(for: file, contents)
  }

  /// Returns the options with which a time that clocks showed twice can be read.
  private static func remedy(for file: NamedFile, _ contents: any BatchContents) -> String {
    let isLoose = !file.path.contains("/") && ((try? contents.modifiedMs(file.path)) ?? nil) != nil
    let fixed = "--time-zone \(file.time.offsets.joined(separator: " up to the change of clocks and ")) after it"
    return "use " + (isLoose ? "--times mtime, or " : "") + fixed
  }

  /// Whether a file lies in a folder `YYYY-MM-DD`.
  static func isInDayFolder(_ path: String) -> Bool {
    let folders = path.split(separator: "/").dropLast()
    return folders.last?.split(separator: "-", omittingEmptySubsequences: false).map(\.utf8.count) == [4, 2, 2]
  }
}

// MARK: - Their instants: order, seconds with several files, names that tell other times

extension NamedTimesFormat {
  /// A file with the time in its name.
  struct NamedFile {
    let path: String
    let time: NamedTime
    var instant: Int64?
    var note: String?
  }

  /// Puts files into the order of their sequence, if it numbers all files of the batch and not those of each second.
  static func ordered(_ files: [NamedFile], _ draft: inout BatchDraft) -> [NamedFile] {
    let numbers = files.compactMap(\.time.sequence)
    guard files.count > 2, numbers.count == files.count, Set(numbers).count == files.count else { return files }
    draft.isListed = true
    return files.sorted { ($0.time.sequence ?? 0) < ($1.time.sequence ?? 0) }
  }

  /// Number of frames in one second that is suspicious in any batch, and in a batch that has most frames in that second.
  private static let (crowd, smallCrowd) = (60, 10)

  /// Returns warnings if names probably tell other times than the patterns read.
  static func warnings(on files: [NamedFile], _ patterns: [NamePattern]) -> [String] {
    var warnings: [String] = []
    let isBlind = patterns.contains(where: \.hasHours) && !patterns.contains(where: \.hasHalfDays)
    let halfDays = isBlind ? files.filter { NameAdvice.isHalfDay($0.path) } : []
    if let first = halfDays.first {
      warnings.append(
        "\(halfDays.count) of \(files.count) names have AM or PM, which the pattern does not read: their times can be twelve "
          + "hours off, the first is \(lastComponent(of: first.path).shortened(to: 80))")
    }
    let whole = files.filter { $0.time.isWholeSecond && $0.instant != nil }
    let seconds = Dictionary(grouping: whole) { ($0.instant ?? 0).flooredDivision(by: 1_000) }
    guard let (second, crowded) = seconds.max(by: { ($0.value.count, $1.key) < ($1.value.count, $0.key) }),
      crowded.count > crowd || crowded.count >= smallCrowd && 2 * crowded.count > files.count
    else { return warnings }
    return warnings + [
      "\(crowded.count) of \(files.count) names tell the same second, \(second * 1_000) in unix milliseconds: "
        + (crowded.allSatisfy { $0.time.sequence != nil }
          ? "the pictures were spread over it, about \(1_000 / crowded.count) ms apart"
          : "check that the pattern reads the right digits")
    ]
  }

  /// Spreads the frames of each second over it, in the order of their sequence, if their names contain no fraction of it.
  static func spread(_ files: [NamedFile]) -> [NamedFile] {
    var files = files
    let seconds = Dictionary(
      grouping: files.indices.filter { files[$0].time.isWholeSecond && files[$0].time.sequence != nil }
    ) {
      files[$0].instant
    }
    for (instant, indexes) in seconds where indexes.count > 1 {
      guard let instant else { continue }
      // Two files of one number, such as a picture and its thumbnail, are of one instant.
      let numbers = Set(indexes.map { files[$0].time.sequence ?? 0 }).sorted()
      let places = Dictionary(uniqueKeysWithValues: numbers.enumerated().map { ($0.element, $0.offset) })
      for index in indexes where numbers.count > 1 {
        let place = places[files[index].time.sequence ?? 0] ?? 0
        files[index].instant = instant + Int64(place) * files[index].time.spanMs / Int64(numbers.count)
        let span = files[index].time.spanMs == 1_000 ? "second" : "minute"
        files[index].note = "frame \(place + 1) of \(numbers.count) in its \(span), which were spread over it"
      }
    }
    return files
  }
}
