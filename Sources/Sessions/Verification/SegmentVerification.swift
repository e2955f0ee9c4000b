// One segment against its manifest: is it the file, is it built as it says, is every instant where it should be, can
// every picture be decoded. Everything is read from the file, nothing believed.

import Encoding
import FileSystem
import JSON

/// Something that is not as a manifest says.
package struct Problem: Sendable, Equatable {
  /// The file it was found in.
  package let file: String
  package let what: String

  package var json: JSONValue { .object(["file": .string(file), "problem": .string(what)]) }
}

enum SegmentVerification {
  /// - Parameters:
  ///   - json: the manifest, as it was parsed.
  ///   - bytes: the segment's file.
  ///   - reader: where it is decoded.
  package static func problems(
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
      // Lack of memory, too: a file can ask for more than there is.
      problems.append(Problem(file: segment.file, what: "cannot be read: \(failure.cause)"))
    }
    return problems
  }

  /// Checks the manifest by itself.
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
