// Sentry for iOS: a directory `<UUID>/` of `<seconds since 2001-01-01>.png`, a Swift `Double`; beside it, or around it,
// `replay.current` or `replay.last`: {"replayId":"<32 hex>","path":"<UUID>","errorSampleRate":1}.

import FileSystem
import JSON

package enum SentryCocoaFormat: BatchFormat {
  package static let name = "Sentry Cocoa"

  /// Seconds from the Unix epoch to Apple's.
  private static let referenceDate = 978_307_200.0
  private static let sideFiles = ["replay.current", "replay.last"]
  private static let junk = ["crashInfo"]
  /// Seconds of a recording: from 2015, before there was one, to 2032-09-09. Ten digits are unix seconds, and small numbers no time.
  private static let possible = 441_763_200.0..<1e9

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    let contents = source.contents
    let count = contents.names.count { instant(ofName: $0) != nil }
    guard PictureNames.areMostly(count, of: contents.names) else { return nil }
    let replays = try sideFiles.compactMap { try replay(in: $0, of: source) }
    let folders = Set(contents.names.filter { instant(ofName: $0) != nil }.map(folder))
    let others = contents.names.filter { !folders.contains(Self.folder($0)) && !isSideFile(lastComponent(of: $0)) }
    // A batch is one session's: frames of others, or of no session, must not vanish with it.
    guard let folder = folders.first, folders.count == 1, folder.isEmpty || others.isEmpty else {
      throw BadBatch(
        "read", source.name,
        folders.count > 1 ? "several recordings" : "\(others[0].shortened(to: 255)) beside a recording",
        advice: "send each recording's directory as a batch of its own")
    }
    let named = replays.first { $0.path + "/" == folder }
    let recording = folder.isEmpty ? source.name : lastComponent(of: folder)
    var draft = BatchDraft()
    draft.session = (named ?? replays.first { $0.path == recording })?.id ?? (isUUID(recording) ? recording : nil)
    draft.sideFiles = Set(contents.names)
    for name in contents.names where Self.folder(name) == folder {
      let base = lastComponent(of: name)
      if let instant = instant(ofName: name) {
        draft.frames.append(Frame(source: base, path: name, timeMs: instant))
      } else if !isSideFile(base) {
        draft.refused.append(
          RefusedFrame(source: base, reason: "the name is no number of seconds since 2001-01-01"))
      }
    }
    return [draft]
  }

  private static func isSideFile(_ base: String) -> Bool { junk.contains(base) || sideFiles.contains(base) }

  /// Returns the folder of a file, with its slash; empty for a file at the top level.
  private static func folder(_ name: String) -> String { String(name.dropLast(lastComponent(of: name).count)) }

  /// Unix milliseconds; nil for names that carry no finite number with a point.
  private static func instant(ofName name: String) -> Int64? {
    let base = lastComponent(of: name)
    guard base.hasSuffix(".png") else { return nil }
    let stem = base.dropLast(4)
    guard stem.contains("."), stem.utf8.allSatisfy({ $0 == UInt8(ascii: ".") || (48...57).contains($0) }),
      let seconds = Double(stem), possible.contains(seconds)
    else { return nil }
    return Int64(((seconds + referenceDate) * 1_000).rounded())
  }

  /// Returns the content of a side file; nil if there is none, or it has another form.
  private static func replay(in file: String, of source: BatchSource) throws -> (id: String, path: String)? {
    guard case .bytes(let bytes)? = try source.contents.sideFile(file, limit: 64 << 10),
      let json = try? JSONParser.parse(bytes), let id = json.object?["replayId"]?.string,
      let path = json.object?["path"]?.string, SessionID(id) != nil
    else { return nil }
    return (id, lastComponent(of: path))
  }

  private static func isUUID(_ name: String) -> Bool {
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    return parts.map(\.utf8.count) == [8, 4, 4, 4, 12] && parts.allSatisfy { $0.allSatisfy(\.isHexDigit) }
  }
}
