import FileSystem

/// P: files named by their capture, `<unix ms>.<jpg, jpeg, png, webp>`, and nothing else.
package enum PlainFormat: BatchFormat {
  package static let name = "plain"

  package static func read(_ source: BatchSource, limits: Limits) throws -> BatchDraft? {
    let draft = draft(of: source.contents.topNames)
    return draft.frames.isEmpty ? nil : draft
  }

  package static func draft(of names: [String]) -> BatchDraft {
    var draft = BatchDraft()
    for name in names {
      if let instant = instant(ofName: name) {
        draft.frames.append(Frame(source: lastComponent(of: name), path: name, timeMs: instant))
      } else {
        draft.refused.append(RefusedFrame(source: name, reason: "the name is not <unix ms>.jpg, .jpeg, .png or .webp"))
      }
    }
    return draft
  }

  private static let imageSuffixes = [".jpg", ".jpeg", ".png", ".webp"]

  /// The capture that a file's name carries.
  package static func instant(ofName name: String) -> Int64? {
    let base = lastComponent(of: name).lowercased()
    guard let suffix = imageSuffixes.first(where: base.hasSuffix) else { return nil }
    let stem = base.dropLast(suffix.count)
    guard !stem.isEmpty, stem.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
      return nil
    }
    return Int64(stem)
  }
}
