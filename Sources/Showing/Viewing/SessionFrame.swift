// The picture on screen at an instant of a session, as an image of its captured size. One video is read, and decoded up to the
// picture.

import Encoding
import FileSystem
import Films
import FrameBatches
import JSON
import Sessions

/// A frame on screen, and where its picture is decoded from.
package struct SessionFrame: Sendable {
  package let session: SessionID
  /// The instant that was asked for, in unix milliseconds.
  package let atMs: Int64
  package let shown: ShownFrame
  /// The name of the captured image.
  package let source: String
  private let directory: SessionDirectory

  /// - Parameter startsMs: the starts of all published segments, in order; at least one.
  /// - Throws: ``NothingOnScreen``; ``BadSession``, ``DamagedOutput`` if a manifest is not as it was written.
  init(of directory: SessionDirectory, at instant: SessionInstant, startsMs: [Int64]) throws {
    var manifests: [Int64: JSONValue] = [:]
    let atMs = instant.unixMs(inSessionFrom: startsMs[0])
    let shown = try ShownFrame(at: atMs, in: directory.session, startsMs: startsMs) { index in
      let (segment, json) = try directory.soundManifest(startsMs[index])
      manifests[segment.startMs] = json
      return segment
    }
    self.init(shown, at: atMs, of: directory, manifests[shown.segment.startMs])
  }

  /// - Parameters:
  ///   - atMs: the instant that was asked for; nil for the frame's own.
  ///   - manifest: of the segment.
  init(_ shown: ShownFrame, at atMs: Int64? = nil, of directory: SessionDirectory, _ manifest: JSONValue?) {
    let frames = manifest?.object?["frames"]?.array ?? []
    self.atMs = atMs ?? shown.shownMs.lowerBound
    self.shown = shown
    self.directory = directory
    session = directory.session
    source = frames.indices.contains(shown.index) ? frames[shown.index].object?["source"]?.string ?? "" : ""
  }

  /// A frame of a session by its path, `OUTPUT/SESSION`.
  package init(of path: String, at instant: SessionInstant, decoders: DecoderForkServer? = nil) throws {
    let directory = try SessionDirectory(at: path, decoders: decoders)
    let startsMs = try directory.publishedStarts()
    guard !startsMs.isEmpty else {
      throw BadSession(path, "no published segment", advice: SessionAdvice.naming(insteadOf: path))
    }
    try self.init(of: directory, at: instant, startsMs: startsMs)
  }

  /// Changes with the picture.
  package var tag: String { "\(shown.segment.sha256.prefix(32))-\(shown.index)" }

  /// Decodes the picture and encodes it as an image: PNG has the decoded colours, JPEG is close to them.
  ///
  /// - Parameter maxSide: the maximum of the longer side, in pixels; nil for the captured size.
  /// - Throws: ``BadSession`` if the video is missing, damaged, or not the one that the manifest describes.
  package func image(as format: ImageFormat, maxSide: Int? = nil) throws -> [UInt8] {
    try directory.image(of: shown, as: format, maxSide: maxSide)
  }

  /// Decodes the picture and returns it as a JPEG that fits 320 × 320 pixels.
  ///
  /// - Throws: ``BadSession`` if the video is missing, damaged, or not the one that the manifest describes.
  package func thumbnail() throws -> [UInt8] {
    try SessionThumbnail.jpeg(of: shown.segment, frame: shown.index, in: directory)
  }

  /// Writes the picture. A file at `target` is replaced atomically.
  ///
  /// - Returns: the file's path, and its size in bytes.
  package func write(to target: String, as format: ImageFormat) throws -> (file: String, bytes: Int) {
    let target = try Stitching.file(target)
    let bytes = try image(as: format)
    try DurableFile.replace(target, bytes, temporary: "\(target).part")
    try Directory(opening: DurableFile.parentDirectory(of: target)).sync()
    return (target, bytes.count)
  }

  /// The members of a JSON object.
  package var members: [String: JSONValue] {
    [
      "session": .string(session.description), "atMs": .number(atMs), "timeMs": .number(shown.frame.timeMs),
      "shownFromMs": .number(shown.shownMs.lowerBound), "shownUntilMs": .number(shown.shownMs.upperBound),
      "status": .string((shown.frame.isCaptured ? FrameHold.Status.captured : .continued).rawValue),
      "source": .string(source), "segment": .string(shown.segment.file), "frame": .number(shown.index),
      "width": .number(shown.segment.width), "height": .number(shown.segment.height),
    ]
  }
}

extension SessionDirectory {
  /// Returns a frame's picture as an image.
  ///
  /// - Parameter maxSide: the maximum of the longer side, in pixels; nil for the captured size.
  func image(of shown: ShownFrame, as format: ImageFormat, maxSide: Int? = nil) throws -> [UInt8] {
    let box = maxSide.map { PixelSize(width: $0, height: $0) } ?? shown.segment.size
    return try image(of: shown.segment, frame: shown.index, fitting: box, as: format)
  }
}

extension SessionFrame {
  /// The last picture of a session.
  ///
  /// - Returns: nil if the session has no segment.
  /// - Throws: ``BadSession``, ``DamagedOutput`` if the last manifest is not as it was written.
  init?(lastOf directory: SessionDirectory) throws {
    guard let startMs = try directory.lastStart() else { return nil }
    let (segment, json) = try directory.soundManifest(startMs)
    let starts = segment.startsOfFrames.map { segment.startMs + $0 }
    // A frame without a hold is never on screen.
    guard let index = starts.lastIndex(where: { $0 < segment.endMs }) else { return nil }
    let shown = ShownFrame(segment: segment, index: index, shownMs: starts[index]..<segment.endMs)
    self.init(shown, of: directory, json)
  }
}
