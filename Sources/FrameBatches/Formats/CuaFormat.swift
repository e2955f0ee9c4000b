// cua, an agent that uses a computer: `metadata.json`, and folders `turn_000` of `0000_<name>.png` and `0000_<name>.json`. The counter runs
// on over the turns. A picture has no time of its own: the record before it was written just before. Each trajectory is a session.

import FileSystem
import JSON

package enum CuaFormat: BatchFormat {
  package static let name = "cua trajectory"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    let contents = source.contents
    var trajectories: [String: [CuaArtifact]] = [:]
    for path in contents.names {
      guard let artifact = CuaArtifact(path) else { continue }
      trajectories[artifact.folder, default: []].append(artifact)
    }
    let pictures = trajectories.values.joined().filter(\.isPicture)
    // A folder of turns without a record is another program's.
    guard trajectories.values.joined().contains(where: { !$0.isPicture }),
      source.isRead(by: pictures.count, of: contents.names.filter(PictureNames.isPicture))
    else { return nil }
    var drafts = try trajectories.filter { $0.value.contains(where: \.isPicture) }.sorted { $0.key < $1.key }.map {
      try CuaTrajectory(contents, limits).draft(of: $1.sorted { $0.number < $1.number }, in: $0)
    }
    guard !drafts.isEmpty else { return nil }
    let known = Set(drafts.flatMap(\.frames).flatMap(\.paths) + drafts.flatMap(\.refused).map(\.source))
    drafts[0].refused += contents.names.filter { PictureNames.isPicture($0) && !known.contains($0) }
      .map { RefusedFrame(source: $0, reason: "no picture of a turn", kind: .otherName) }
    drafts[0].sideFiles = Set(contents.names.filter { !PictureNames.isPicture($0) })
    return drafts
  }
}

/// A file of a turn.
private struct CuaArtifact {
  let path: String
  /// The path of the trajectory, with its slash; empty if that is the batch.
  let folder: String
  let number: Int
  /// The name behind the number, without the suffix.
  let name: Substring
  let isPicture: Bool

  init?(_ path: String) {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count >= 2, parts[parts.count - 2].hasPrefix("turn_"),
      parts[parts.count - 2].dropFirst(5).isDecimal, let file = parts.last,
      let point = file.lastIndex(of: "."), case let stem = file[..<point], let dash = stem.firstIndex(of: "_"),
      (4...9).contains(stem[..<dash].utf8.count), stem[..<dash].isDecimal,
      let number = Int(stem[..<dash]), [".png", ".json"].contains(file[point...])
    else { return nil }
    (self.path, self.number) = (path, number)
    folder = parts.dropLast(2).map { $0 + "/" }.joined()
    name = stem[dash...].dropFirst()
    isPicture = file[point...] == ".png"
  }
}

/// Reads the records of a trajectory.
private struct CuaTrajectory {
  private let contents: any BatchContents
  private let limits: Limits

  init(_ contents: any BatchContents, _ limits: Limits) { (self.contents, self.limits) = (contents, limits) }

  /// - Parameter artifacts: in the order of their numbers.
  func draft(of artifacts: [CuaArtifact], in folder: String) throws -> BatchDraft {
    var draft = BatchDraft()
    (draft.isListed, draft.defaultCapture) = (true, .onChange)
    if !folder.isEmpty { draft.session = lastComponent(of: String(folder.dropLast())) }
    // Before the first record, the trajectory began.
    var record = folder + "metadata.json"
    var facts = try json(record)
    for (index, artifact) in artifacts.enumerated() {
      let isBeforePicture = index + 1 < artifacts.count && artifacts[index + 1].isPicture
      guard artifact.isPicture else {
        let isStep = artifact.name.hasSuffix("_call_result")
        record = artifact.path
        facts = isStep || isBeforePicture ? try json(record) : nil
        if isStep, let step = step(in: facts) { draft.labels.append(step) }
        continue
      }
      guard let timeMs = Self.instant(in: facts) else {
        let reason = "\(record.shortened(to: 255)), the record before it, tells no time"
        draft.refused.append(RefusedFrame(source: artifact.path, reason: reason, kind: .record))
        continue
      }
      // Of several pictures behind one record, the last one is shown.
      guard !isBeforePicture else {
        let reason = "\(artifacts[index + 1].path.shortened(to: 255)) has the same time"
        draft.refused.append(
          RefusedFrame(source: artifact.path, reason: reason, kind: .sameInstant(isCompanion: false)))
        continue
      }
      draft.frames.append(Frame(source: lastComponent(of: artifact.path), path: artifact.path, timeMs: timeMs))
    }
    return draft
  }

  /// Returns what the agent did; nil for another record. The text that it types may be secret.
  private func step(in json: JSONValue?) -> Label? {
    guard let timeMs = Self.instant(in: json), let item = json?.object?["item"]?.object else { return nil }
    let arguments = item["arguments"]?.string.flatMap { try? JSONParser.parse(Array($0.utf8)) } ?? item["arguments"]
    let action = item["action"]?.object ?? arguments?.object ?? [:]
    guard let verb = action["type"]?.string ?? action["action"]?.string ?? item["name"]?.string else { return nil }
    return Label(timeMs: timeMs, kind: Label.Kind.step, text: AgentAction.text(verb, at: action))
  }

  /// - Returns: nil if it cannot be read.
  private func json(_ path: String) throws -> JSONValue? {
    guard case .bytes(let bytes)? = try contents.contents(of: path, limit: limits.fileBytes) else { return nil }
    return try? JSONParser.parse(bytes)
  }

  /// The time of a record is that of a UUID of version 1 (RFC 9562, 5.1): a text with 100-nanosecond ticks since 1582-10-15.
  private static func instant(in json: JSONValue?) -> Int64? {
    guard let ticks = json?.object?["created_at"]?.string.flatMap({ Int64($0) }), ticks > epoch else { return nil }
    return (ticks - epoch) / 10_000
  }

  /// 1970-01-01, in these ticks.
  private static let epoch: Int64 = 122_192_928_000_000_000
}
