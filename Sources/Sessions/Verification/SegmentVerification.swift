// Checks one segment against its manifest: its digest, its structure, its times, and whether every picture can be decoded.

import Encoding
import FileSystem
import JSON

enum SegmentVerification {
  /// - Parameters:
  ///   - json: the manifest, as it was parsed.
  ///   - bytes: the segment's file.
  static func problems(
    _ json: JSONValue, _ segment: PublishedSegment, bytes: [UInt8], reader: VideoReader
  ) throws -> [Problem] {
    let manifest = SegmentName.manifest(segment.startMs)
    var problems = problemsOfManifest(json, segment).map { Problem(file: manifest, what: $0) }
    guard bytes.count == segment.bytes, SHA256.hex(of: bytes) == segment.sha256 else {
      let size = bytes.count == segment.bytes ? "other bytes" : "\(bytes.count) bytes instead of \(segment.bytes)"
      return problems + [Problem(file: segment.file, what: "not the file its manifest describes: \(size)")]
    }
    do {
      problems += try reader.problems(json, segment, bytes).map { Problem(file: segment.file, what: $0) }
    } catch let bad as BadSession {
      problems.append(Problem(file: segment.file, what: bad.cause))
    } catch let failure as FFmpegError {
      // This includes a lack of memory: a damaged file can ask for any amount.
      problems.append(Problem(file: segment.file, what: "cannot be read: \(failure.cause)"))
    }
    return problems
  }

  /// Checks the manifest alone.
  private static func problemsOfManifest(_ json: JSONValue, _ segment: PublishedSegment) -> [String] {
    var problems: [String] = []
    if SegmentManifest.seal(of: json) != json.object?["manifestSha256"]?.string {
      problems.append("edited: its digest is another")
    }
    if json.object?["durationMs"]?.integer != segment.durationMs {
      problems.append("durationMs is not endMs − startMs")
    }
    if segment.frames.reduce(0, { $0 + $1.holdMs }) != segment.durationMs
      || segment.frames.contains(where: { $0.holdMs <= 0 })
    {
      problems.append("the holds do not add up to the duration")
    }
    if let touches = json.object?["touches"] {
      do {
        _ = try SegmentTouches(touches, durationMs: segment.durationMs)
      } catch {
        problems.append("touches: \(error)")
      }
    }
    if let pages = json.object?[SegmentPages.key] {
      do {
        _ = try SegmentPages.read(pages, of: segment)
      } catch {
        problems.append("\(SegmentPages.key): \(error)")
      }
    }
    if let labels = json.object?[SegmentLabels.key] {
      do {
        _ = try SegmentLabels.read(labels)
      } catch {
        problems.append("\(SegmentLabels.key): \(error)")
      }
    }
    if let health = json.object?[SegmentHealth.key] {
      do {
        _ = try SegmentHealth(health)
      } catch {
        problems.append("\(SegmentHealth.key): \(error)")
      }
    }
    var start = segment.startMs
    for (index, frame) in segment.frames.enumerated() {
      if frame.isCaptured ? frame.timeMs != start : index > 0 || frame.timeMs >= segment.startMs {
        problems.append("frame \(index) is not shown at its capture")
      }
      start += frame.holdMs
    }
    return problems
  }
}
