import FileSystem

/// Plain frames of any recorder: files named by their capture, `<unix ms>` with nearly any suffix, and no description.
package enum PlainFormat: BatchFormat {
  package static let name = "plain"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    let draft = draft(of: source.contents.topNames)
    guard source.isRead(by: draft.frames.count, of: source.contents.topNames) else { return nil }
    // An archive has the names in its folders, too.
    if let first = draft.frames.first, first.folderDepth > 0,
      let (cause, advice) = try InterleavedSources.folders(
        of: draft.frames.map { ($0.paths[0], $0.timeMs) }, source, limits)
    {
      throw BadBatch("read", source.name, cause, advice: advice)
    }
    return [draft]
  }

  package static func draft(of names: [String]) -> BatchDraft {
    var draft = BatchDraft()
    for name in names {
      if let instant = instant(ofName: name) {
        draft.frames.append(Frame(source: lastComponent(of: name), path: name, timeMs: instant))
      } else {
        draft.refused.append(
          RefusedFrame(
            source: name, reason: "the name is not <unix ms>.jpg, .jpeg, .png or .webp", kind: .otherName))
      }
    }
    return draft
  }

  /// Suffixes of files that lie beside frames and are no frames. A frame may have any other suffix: its content decides.
  private static let otherSuffixes: Set<Substring> = ["csv", "html", "json", "log", "txt", "xml", "yaml", "yml"]

  /// Whether a name is only unix milliseconds, or a smaller unit. Seconds have fewer digits.
  package static func isUnixMilliseconds(_ name: String) -> Bool {
    name.utf8.prefix { (48...57).contains($0) }.count >= 12 && instant(ofName: name) != nil
  }

  private static let point = UInt8(ascii: ".")

  /// The capture time in a file's name, `<unix ms>` or `<unix ms>.<suffix>`, in milliseconds; nil for any other name. A number of 16
  /// digits are microseconds, and one of 19 nanoseconds: they are rounded.
  package static func instant(ofName name: String) -> Int64? {
    let base = lastComponent(of: name)
    // Most other names differ here already.
    guard base.utf8.first?.isDigit == true, base.utf8.first(where: { !$0.isDigit }) ?? point == point else {
      return nil
    }
    let parts = base.lowercased().split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count <= 2, parts.count == 1 || !otherSuffixes.contains(parts[1]) else { return nil }
    let stem = parts[0]
    guard !stem.isEmpty, stem.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
      return nil
    }
    guard let number = Int64(stem), stem.first != "0" else { return Int64(stem) }
    // Milliseconds have 12 or 13 digits up to the year 2286.
    switch stem.utf8.count {
    case 16: return number.roundedDivision(by: 1_000)
    case 19: return number.roundedDivision(by: 1_000_000)
    default: return number
    }
  }
}
