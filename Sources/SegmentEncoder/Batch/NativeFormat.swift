// N: frames and a `batch.json` that says what they are. In an archive they may lie in a directory; `file` is then
// relative to where `batch.json` is.

import FoundationEssentials

enum NativeFormat: BatchFormat {
  static let description = "batch.json"

  static func read(_ contents: any BatchContents, limits: Limits) throws -> BatchDraft? {
    let candidates = contents.names.filter { lastComponent(of: $0) == description }
    guard let path = candidates.min(by: { $0.utf8.count < $1.utf8.count }) else { return nil }
    let folder = String(path.dropLast(description.count))
    let json = try parse(try bytes(of: path, in: contents, limits: limits), path: path)
    guard json.version == 1 else {
      throw BadBatch("read", path, "version \(json.version) is not known", advice: "write version 1")
    }

    var draft = BatchDraft()
    draft.session = json.session
    draft.intervalMs = json.intervalMs
    draft.endMs = json.endMs
    draft.capture = json.capture ?? .interval
    draft.isFinal = json.final ?? false
    draft.metadata = json.metadata ?? .object([:])

    var known: Set<String> = [path]
    if let listed = json.frames {
      for entry in listed {
        let place = folder + entry.file
        guard known.insert(place).inserted else {
          draft.refused.append(RefusedFrame(source: entry.file, reason: "listed twice"))
          continue
        }
        switch entry.instant {
        case .success(let timeMs):
          draft.frames.append(Frame(source: entry.file, path: place, timeMs: timeMs, masks: entry.masks))
        case .failure(let refusal): draft.refused.append(RefusedFrame(source: entry.file, reason: refusal.reason))
        }
      }
    }
    for name in contents.names where !known.contains(name) {
      if json.frames == nil, let instant = PlainFormat.instant(ofName: name) {
        draft.frames.append(Frame(source: lastComponent(of: name), path: name, timeMs: instant))
      } else {
        let reason = json.frames == nil ? "the name carries no instant" : "not listed in \(description)"
        draft.refused.append(RefusedFrame(source: name, reason: reason))
      }
    }
    return draft
  }

  private static func bytes(of path: String, in contents: any BatchContents, limits: Limits) throws -> [UInt8] {
    switch try contents.contents(of: path, limit: limits.jsonBytes) {
    case .bytes(let bytes)?: return bytes
    case .refused(let reason)?: throw BadBatch("read", path, reason, advice: "send a plain file of reasonable size")
    case nil: throw BadBatch("read", path, "missing", advice: "send the batch again")
    }
  }

  private static func parse(_ bytes: [UInt8], path: String) throws -> Description {
    do {
      // Lenient: NaN and Infinity are no JSON, but recorders write them, and a mask made of them must fail closed
      // for its frame alone.
      return try JSONText.decode(Description.self, from: bytes, lenient: true)
    } catch let error as DecodingError {
      throw BadBatch("read", path, error.cause, advice: "write batch.json as the README's folder contract says")
    }
  }

  private struct Description: Decodable {
    let version: Int
    let session: String?
    let intervalMs: Int64?
    let endMs: Int64?
    let capture: Batch.Capture?
    let final: Bool?
    let frames: [Entry]?
    let metadata: JSONValue?
  }

  private struct Refusal: Error { let reason: String }

  private struct Entry: Decodable {
    let file: String
    let instant: Result<Int64, Refusal>
    let masks: Masks

    private enum Key: String, CodingKey { case file, timeMs, masks }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      file = try container.decode(String.self, forKey: .file)
      if let timeMs = try? container.decode(Int64.self, forKey: .timeMs) {
        instant = .success(timeMs)
      } else if let number = try? container.decode(Double.self, forKey: .timeMs) {
        instant = .failure(Refusal(reason: "timeMs \(number) is not a whole number of milliseconds"))
      } else if let name = container.contains(.timeMs) ? nil : PlainFormat.instant(ofName: file) {
        instant = .success(name)
      } else {
        instant = .failure(Refusal(reason: "no timeMs that is a number"))
      }
      masks = container.contains(.masks) ? try container.decode(Masks.self, forKey: .masks) : .none
    }
  }
}

extension DecodingError {
  /// Where the JSON is wrong, in words for whoever wrote it.
  var cause: String {
    func place(_ context: Context) -> String {
      let path = context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }.joined()
      return path.isEmpty ? "" : String(path.drop { $0 == "." }) + ": "
    }
    switch self {
    case .keyNotFound(let key, let context): return place(context) + "no \"\(key.stringValue)\""
    case .valueNotFound(_, let context), .typeMismatch(_, let context): return place(context) + context.debugDescription
    case .dataCorrupted(let context):
      let detail = context.underlyingError.map { ": \($0)" } ?? ""
      return place(context) + (context.codingPath.isEmpty ? "not JSON" + detail : context.debugDescription)
    @unknown default: return "\(self)"
    }
  }
}
