// The files of a live package that its playlist no longer names, and when each may be removed: viewers may have the playlist before.
// The text is a line a file, `<unix ms> <name>`, with `-` before the time of a file that is being removed. Pure.

struct SupersededFiles: Equatable {
  /// The time that viewers have to reload a live playlist, in milliseconds. They do so every target duration, some ten seconds.
  static let graceMs: Int64 = 300_000
  /// Viewers of a playlist that has ended do not reload it: its files stay for its duration, too, and a day at most.
  private static let maximumDurationMs: Int64 = 86_400_000

  /// The times of removal, in unix milliseconds.
  private var dueMs: [String: Int64] = [:]
  /// Files that a worker is removing from an object store, and since when.
  private var removingMs: [String: Int64] = [:]
  /// After this time the worker that was removing files has given up or died, in milliseconds.
  static let takeoverMs: Int64 = 600_000

  init() {}

  /// Reads a list. Lines of another form are left out, so that no other file is ever removed.
  init(_ text: [UInt8]) {
    for line in text.split(separator: UInt8(ascii: "\n")) {
      let parts = String(decoding: line, as: UTF8.self).split(separator: " ")
      guard parts.count == 2, case let name = String(parts[1]), Self.canList(name), let time = Int64(parts[0]),
        time > .min
      else { continue }
      if time < 0 { removingMs[name] = -time } else { dueMs[name] = time }
    }
  }

  var text: [UInt8] {
    let lines = dueMs.map { ($0.key, "\($0.value)") } + removingMs.map { ($0.key, "-\($0.value)") }
    return Array(lines.sorted { $0.0 < $1.0 }.map { "\($0.1) \($0.0)\n" }.joined().utf8)
  }

  var names: Set<String> { Set(dueMs.keys).union(removingMs.keys) }

  var isEmpty: Bool { dueMs.isEmpty && removingMs.isEmpty }

  /// Returns whether a package writes files of this name whose content never changes.
  static func canList(_ name: String) -> Bool {
    let parts = name.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard parts.count == 3, parts[2].count == 8 + 4, parts[2].prefix(8).allSatisfy(\.isHexadecimal) else {
      return name == HLSPlaylist.gapFile || name == HLSCaptionSegment.emptyFile
    }
    if name.hasPrefix(HLSCaptions.prefix) {
      return parts[1].count == 13 && parts[1].allSatisfy(\.isDigit) && name.hasSuffix(HLSCaptions.suffix)
    }
    if name.hasPrefix("segment-") || name.hasPrefix(HLSPlaylist.holdPrefix) {
      return parts[1].count == 13 && parts[1].allSatisfy(\.isDigit) && name.hasSuffix(".m4s")
    }
    let size = parts[1].split(separator: UInt8(ascii: "x"), omittingEmptySubsequences: false)
    return name.hasPrefix("init-") && name.hasSuffix(".mp4") && size.count == 2
      && size.allSatisfy { !$0.isEmpty && $0.allSatisfy(\.isDigit) }
  }

  /// Returns how long the files of a playlist stay after another replaced it, in milliseconds.
  ///
  /// - Parameter durationMs: of the session.
  static func graceMs(after replaced: [UInt8], durationMs: Int64) -> Int64 {
    graceMs + (HLSPlaylist.hasEnded(replaced) ? min(max(durationMs, 0), maximumDurationMs) : 0)
  }

  /// Takes out the files that a playlist names.
  mutating func keep(_ named: Set<String>) {
    dueMs = dueMs.filter { !named.contains($0.key) }
    removingMs = removingMs.filter { !named.contains($0.key) }
  }

  /// Adds the files that the next playlist does not name, and takes out those that it names. A file that is listed keeps its time,
  /// unless viewers can still find it in the published playlist: then an earlier replacement of that playlist failed.
  ///
  /// - Parameters:
  ///   - files: of the package.
  ///   - published: the files that the published playlist names.
  mutating func replace(
    _ published: Set<String>, with named: Set<String>, among files: some Sequence<String>, dueMs newMs: Int64
  ) {
    keep(published)
    keep(named)
    for file in published.union(files)
    where !named.contains(file) && removingMs[file] == nil && Self.canList(file) {
      dueMs[file] = dueMs[file] ?? newMs
    }
  }

  /// Returns the files that may be removed now, a number of them at most.
  func due(atMs nowMs: Int64, limit: Int = .max) -> [String] {
    let abandoned = removingMs.filter { $0.value <= nowMs - Self.takeoverMs }
    return Array((Array(dueMs.filter { $0.value <= nowMs }.keys) + Array(abandoned.keys)).sorted().prefix(limit))
  }

  /// Marks files as being removed.
  mutating func beginRemoval(of files: [String], atMs nowMs: Int64) {
    for file in files { (dueMs[file], removingMs[file]) = (nil, nowMs) }
  }

  /// Returns whether one of the files is being removed.
  func isRemoving(any files: Set<String>) -> Bool { removingMs.keys.contains(where: files.contains) }

  /// Takes out removed files.
  mutating func endRemoval(of files: some Sequence<String>) {
    for file in files { (dueMs[file], removingMs[file]) = (nil, nil) }
  }

  /// Takes back the marks of files whose removal failed. They are due at once.
  mutating func giveUpRemoval(of files: some Sequence<String>, atMs nowMs: Int64) {
    for file in files where removingMs[file] != nil { (dueMs[file], removingMs[file]) = (nowMs, nil) }
  }
}

extension UInt8 {
  fileprivate var isDigit: Bool { (48...57).contains(self) }
  fileprivate var isHexadecimal: Bool { isDigit || (97...102).contains(self) }
}
