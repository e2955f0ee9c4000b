// Pictures whose capture times a list tells, on request of the user. See `TimeList`.

import FileSystem

package enum ListedTimesFormat: BatchFormat {
  package static let name = "times in a list"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard case .list(let list, let startMs)? = source.options.times else { return nil }
    var draft = BatchDraft()
    draft.defaultCapture = .onChange
    draft.endMs = list.endMs.map { $0 + (startMs ?? 0) }
    let names = names(of: list, in: source.contents)
    if let own = names.own { draft.sideFiles.insert(own) }
    var files: [NamedTimesFormat.NamedFile] = []
    var lines: [String: TimeList.Entry] = [:]
    var faults = list.faults
    for (index, entry) in list.entries.enumerated() {
      guard let name = names.found[index] else {
        faults.append(
          TimeList.Fault(line: entry.line, reason: "no file '\(entry.file.shortened(to: 255))' in the batch"))
        continue
      }
      if let first = lines.updateValue(lines[name] ?? entry, forKey: name) {
        if first.time.instants != entry.time.instants {
          faults.append(
            TimeList.Fault(
              line: entry.line, reason: "'\(name.shortened(to: 255))' is listed again; line \(first.line) counts"))
        }
        continue
      }
      var time = list.isRelative ? NamedTime(exact: (entry.time.instants.first ?? 0) + (startMs ?? 0)) : entry.time
      // The order of the lines is that of the pictures of a second.
      time.sequence = Int64(index)
      files.append(NamedTimesFormat.NamedFile(path: name, time: time))
    }
    NamedTimesFormat.add(files, to: &draft, source)
    draft.refused += faults.map { RefusedFrame(source: "\(list.name):\($0.line)", reason: $0.reason) }
    if let first = faults.first {
      draft.warnings.append(
        "\(count(faults.count, "line")) of \(list.name) cannot be used; the first is line \(first.line): \(first.reason)"
      )
    }
    for name in source.contents.names where lines[name] == nil && name != names.own {
      draft.refused.append(RefusedFrame(source: name, reason: "not listed in \(list.name)"))
    }
    return [draft]
  }

  /// Suffixes of lists, and the numbers of files and of bytes that are read to find one.
  private static let suffixes: Set<String> = ["csv", "ffconcat", "json", "jsonl", "list", "tsv", "txt"]
  private static let (mostLists, mostBytes) = (8, 1 << 20)

  /// Returns a list that lies beside the pictures, and the option with which its times are read; nil if there is none that tells the
  /// times of half of them at least.
  static func advice(on contents: any BatchContents) -> (list: String, advice: String)? {
    let pictures = contents.names.count(where: PictureNames.isPicture)
    let candidates = contents.topNames.filter { suffixes.contains(PictureNames.parts(of: $0).suffix) }
    for name in candidates.prefix(mostLists) {
      guard case .bytes(let bytes)? = try? contents.contents(of: name, limit: mostBytes),
        let list = try? TimeList(bytes, at: .batch(name), zone: .utc)
      else { continue }
      let found = Set(names(of: list, in: contents).found.compactMap { $0 })
      // Small numbers in a table may be anything.
      guard !found.isEmpty, 2 * found.count >= pictures, !list.isRelative || list.endMs != nil else { continue }
      let isLocal = (try? TimeList(bytes, at: .batch(name), zone: nil)) == nil
      let place =
        contents.path(of: name).map { "--times \($0.shellWord)" } ?? "unpack it, and give --times \(name.shellWord)"
      return (
        name,
        place + (list.isRelative ? " with --start T (film needs no start)" : "")
          + (isLocal ? " --time-zone Europe/Berlin" : "")
      )
    }
    return nil
  }

  /// Returns the files of the entries, nil for an entry without one, and the list's own file in the batch. Names count from the list's
  /// folder, or from the batch, or are the last names of other paths: the way that finds the most files counts.
  private static func names(
    of list: TimeList, in contents: any BatchContents
  ) -> (found: [String?], own: String?) {
    let all = contents.names
    var ways: [(String) -> String?] = []
    var own: String?
    let inBatch = Set(all)
    switch list.place {
    case .batch(let name):
      own = name
      let folder = name.lastIndex(of: "/").map { String(name[...$0]) } ?? ""
      ways.append { plain(folder + $0, in: inBatch) }
    case .file(let path):
      var folders: [String: String] = [:]
      var paths: [String: String] = [:]
      for name in all {
        guard let file = contents.path(of: name) else { continue }
        let parent = DurableFile.parentDirectory(of: file)
        let folder = folders[parent] ?? DurableFile.resolved(parent)
        folders[parent] = folder
        paths[(folder == "/" ? "" : folder) + "/" + lastComponent(of: file)] = name
      }
      own = paths[path]
      let folder = DurableFile.parentDirectory(of: path)
      ways.append { paths[normal($0.hasPrefix("/") ? $0 : folder + "/" + $0)] }
    }
    ways.append { plain($0, in: inBatch) }
    let last = Dictionary(grouping: all, by: lastComponent(of:)).compactMapValues { $0.count == 1 ? $0[0] : nil }
    let isDistinct = Set(list.entries.map { lastComponent(of: $0.file) }).count == Set(list.entries.map(\.file)).count
    if isDistinct { ways.append { last[lastComponent(of: $0)] } }
    var best: [String?] = []
    for way in ways {
      let found = list.entries.map { way($0.file) }
      if best.isEmpty || found.count(where: { $0 != nil }) > best.count(where: { $0 != nil }) { best = found }
    }
    return (best, own)
  }

  private static func plain(_ name: String, in names: Set<String>) -> String? {
    let name = names.contains(name) ? name : normal(name)
    return names.contains(name) ? name : nil
  }

  /// Returns a path without `.`, `..` and empty components; it is compared with others, and never opened.
  private static func normal(_ path: String) -> String {
    var parts: [Substring] = []
    for part in path.split(separator: "/") where part != "." {
      if part == "..", !parts.isEmpty { parts.removeLast() } else { parts.append(part) }
    }
    return (path.hasPrefix("/") ? "/" : "") + parts.joined(separator: "/")
  }
}
