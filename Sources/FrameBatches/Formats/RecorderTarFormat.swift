// OpenReplay and Rejourney: a tar of `<session start ms>_1_<capture>.jpeg`, named `<session>-<last ms>.tar.gz`.
// OpenReplay's captures are unix milliseconds; Rejourney's may be milliseconds from the session's start.

import FileSystem

package enum RecorderTarFormat: BatchFormat {
  package static let name = "OpenReplay or Rejourney tar"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    var draft = BatchDraft()
    let top = source.contents.topNames
    // As in the plain form, files in folders are left out where others lie beside the folders.
    let names = top.contains { instant(ofName: lastComponent(of: $0)) != nil } ? top : source.contents.names
    for name in names {
      let base = lastComponent(of: name)
      if let instant = instant(ofName: base) {
        draft.frames.append(Frame(source: base, path: name, timeMs: instant))
      } else {
        draft.refused.append(
          RefusedFrame(source: base, reason: "the name is not <start ms>_1_<ms>.jpeg", kind: .otherName))
      }
    }
    guard PictureNames.areMostly(draft.frames.count, of: names) else { return nil }
    draft.session = source.nameBeforeDash
    return [draft]
  }

  private static func instant(ofName name: String) -> Int64? {
    // Most other names differ here already.
    guard let first = name.utf8.first, first.isDigit || first == UInt8(ascii: "+") else { return nil }
    let lower = name.lowercased()
    guard let suffix = [".jpeg", ".jpg"].first(where: lower.hasSuffix) else { return nil }
    let parts = name.dropLast(suffix.count).split(separator: "_", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[1] == "1", let start = Int64(parts[0]), let capture = Int64(parts[2]), start >= 0,
      capture >= 0
    else { return nil }
    guard capture < start, start > 1_000_000_000_000 else { return capture }
    return start.addingReportingOverflow(capture).partialValue
  }
}
