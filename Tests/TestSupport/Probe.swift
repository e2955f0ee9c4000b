import Foundation

/// The properties of a file, as ffprobe reports them.
public struct Probe: Decodable {
  public struct Stream: Decodable {
    public let codecType: String
    public let codecName: String
    public let codecTagString: String
    public let width: Int?
    public let height: Int?
    public let level: Int?
    public let profile: String?
    public let hasBFrames: Int?
    public let fieldOrder: String?
    public let colorRange: String?
    public let colorSpace: String?
    public let colorTransfer: String?
    public let colorPrimaries: String?
    public let timeBase: String
    public let startPts: Int64
    public let durationTs: Int64?
    public let disposition: [String: Int]
  }

  public struct Packet: Decodable {
    public let streamIndex: Int
    public let pts: Int64
    public let dts: Int64
    /// Zero if the container has no duration.
    public let duration: Int64
    public let size: String
    public let flags: String

    public var isKey: Bool { flags.hasPrefix("K") }

    private enum CodingKeys: CodingKey { case streamIndex, pts, dts, duration, size, flags }

    public init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      streamIndex = try values.decode(Int.self, forKey: .streamIndex)
      pts = try values.decode(Int64.self, forKey: .pts)
      dts = try values.decode(Int64.self, forKey: .dts)
      duration = try values.decodeIfPresent(Int64.self, forKey: .duration) ?? 0
      size = try values.decode(String.self, forKey: .size)
      flags = try values.decode(String.self, forKey: .flags)
    }
  }

  public struct Format: Decodable {
    public let duration: String?
  }

  public let streams: [Stream]
  public let packets: [Packet]
  public let format: Format

  public init(_ file: String) throws {
    let json = try Tool.output(
      "ffprobe", ["-v", "error", "-of", "json", "-show_format", "-show_streams", "-show_packets", file])
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    self = try decoder.decode(Self.self, from: json)
  }

  /// Returns the packets of a track.
  public func packets(of stream: Int) -> [Packet] { packets.filter { $0.streamIndex == stream } }

  /// Returns the texts of a file's timing track, as stock ffmpeg extracts them.
  public static func timingTexts(_ file: String) throws -> [TimingEntry] { try timingTexts(of: [file])[0] }

  /// Returns the timing texts of several files, with one process.
  public static func timingTexts(of files: [String]) throws -> [[TimingEntry]] {
    let scratch = try ScratchDirectory()
    var arguments = ["-v", "error"]
    for file in files { arguments += ["-i", file] }
    for index in files.indices {
      arguments += ["-map", "\(index):s:0", "-c", "copy", "-f", "data", scratch.path("\(index).data")]
    }
    try Tool.output("ffmpeg", arguments)
    return try files.indices.map { index in
      var rest = Array(try Data(contentsOf: URL(fileURLWithPath: scratch.path("\(index).data"))))[...]
      var texts: [TimingEntry] = []
      while rest.count >= 2 {
        let length = Int(rest[rest.startIndex]) << 8 | Int(rest[rest.startIndex + 1])
        // An empty text marks a gap in the recording.
        if length > 0 {
          texts.append(try JSONDecoder().decode(TimingEntry.self, from: Data(rest.dropFirst(2).prefix(length))))
        }
        rest = rest.dropFirst(2 + length)
      }
      return texts
    }
  }
}

public struct TimingEntry: Decodable, Equatable {
  public let t: Int64
  public let f: String
  public let continued: Bool?

  /// Makes the expected track text of a frame in a manifest.
  public init(_ frame: PublishedSession.Manifest.Frame) {
    t = frame.timeMs
    f = frame.source
    continued = frame.status == "continued" ? true : nil
  }
}

/// A published session, read without code of the project.
public struct PublishedSession {
  public struct Manifest: Decodable {
    public struct Frame: Decodable, Equatable {
      public let timeMs: Int64
      public let holdMs: Int64
      public let source: String
      public let status: String
      public let note: String?
      public let changedBlocks: Int?
      public let masks: [Mask]?
    }
    /// A part of a picture, in its pixels.
    public struct Mask: Decodable, Equatable, Sendable {
      public let x, y, width, height: Int

      public init(x: Int, y: Int, width: Int, height: Int) {
        (self.x, self.y, self.width, self.height) = (x, y, width, height)
      }
    }
    public struct Refused: Decodable, Equatable {
      public let source: String
      public let reason: String
    }

    public let session: String
    public let batch: String
    public let file: String
    public let startMs: Int64
    public let endMs: Int64
    public let durationMs: Int64
    public let width: Int
    public let height: Int
    public let codedWidth: Int
    public let codedHeight: Int
    public let codec: String
    public let timescale: Int64
    public let bytes: Int
    public let sha256: String
    public let samples: Int
    public let frames: [Frame]
    public let refused: [Refused]
    public let intervalMs: Int64
    public let gapAfterMs: Int64
    public let final: Bool

    /// The time of each frame on screen, in milliseconds from the segment's start.
    public var offsetsMs: [Int64] {
      frames.reduce(into: [0]) { $0.append($0.last! + $1.holdMs) }.dropLast()
    }
  }

  public struct Index: Decodable {
    public struct Segment: Decodable { public let file: String, startMs: Int64, durationMs: Int64, frames: Int }
    public struct Gap: Decodable, Equatable {
      public let startMs: Int64
      public let endMs: Int64

      /// The gap after a segment.
      public init(after manifest: Manifest) {
        startMs = manifest.endMs
        endMs = manifest.endMs + manifest.gapAfterMs
      }
    }
    public let format: String
    public let session: String
    public let startMs: Int64
    public let endMs: Int64
    public let durationMs: Int64
    public let complete: Bool
    public let segments: [Segment]
    public let gaps: [Gap]
    public let frames: Int
    public let bytes: Int
  }

  public let path: String
  /// The manifests, ordered by start.
  public let manifests: [Manifest]
  public let index: Index

  public init(_ path: String) throws {
    self.path = path
    let decoder = JSONDecoder()
    manifests = try names(in: path).filter { $0.wholeMatch(of: #/segment-\d+\.json/#) != nil }
      .map { try decoder.decode(Manifest.self, from: Data(contentsOf: URL(fileURLWithPath: path + "/" + $0))) }
    index = try decoder.decode(
      Index.self, from: Data(contentsOf: URL(fileURLWithPath: path + "/session.json")))
  }

  public func video(_ manifest: Manifest) -> String { path + "/" + manifest.file }

  /// Returns the pictures of each segment, at their coded size.
  public func pictures() throws -> [[Pixels]] {
    try Pixels.decode(manifests.map { (video($0), $0.codedWidth, $0.codedHeight) })
  }

  /// The instant and source of each captured frame.
  public var captured: [(timeMs: Int64, source: String)] {
    manifests.flatMap { $0.frames.filter { $0.status == "captured" }.map { ($0.timeMs, $0.source) } }
  }
}

/// Stitches a session with stock ffmpeg. Copies only the video.
public func stitch(_ session: String, to film: String) throws {
  try Tool.output(
    "ffmpeg",
    ["-v", "error", "-y", "-f", "concat", "-safe", "0", "-i", session + "/session.ffconcat", "-c", "copy", film])
}
