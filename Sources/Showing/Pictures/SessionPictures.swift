// The pictures of a session that matter, for people and for models: chosen by their changes, each named by its instant.

import Encoding
import FileSystem
import Films
import FrameBatches
import JSON
import Sessions

/// The result of writing pictures.
package struct WrittenPictures: Sendable, Equatable {
  package let file: String
  package let session: String
  package let pictures: Int
  /// The number of pictures of the part that they are chosen from.
  package let captures: Int
  package let tokens: Int
  package let bytes: Int
  /// The part of the session, in unix milliseconds.
  package let part: Range<Int64>
  /// Missing parts of the session.
  package let warnings: [Problem]

  /// One line of JSON.
  package var json: String {
    JSONValue.object([
      "file": .string(file), "session": .string(session), "pictures": .number(pictures), "captures": .number(captures),
      "tokens": .number(tokens), "bytes": .number(bytes), "fromMs": .number(part.lowerBound),
      "toMs": .number(part.upperBound), "warnings": .array(warnings.map(\.json)),
    ]).line
  }
}

/// The chosen pictures of a session.
package struct SessionPictures {
  private let directory: SessionDirectory
  private let part: ClippedSession
  private let choice: PictureChoice
  /// The number of pictures that were chosen from.
  private let captures: Int
  private let chosen: [CapturedPicture]

  /// The number of the chosen pictures.
  var count: Int { chosen.count }

  /// - Parameter pictures: those of the part to choose from.
  /// - Throws: ``TooManyTokens``.
  init(
    of directory: SessionDirectory, _ part: ClippedSession, _ choice: PictureChoice, from pictures: [CapturedPicture]
  ) throws(TooManyTokens) {
    (self.directory, self.part, self.choice) = (directory, part, choice)
    captures = pictures.count
    chosen = try choice.chosen(of: pictures)
  }

  /// Writes the pictures of a session that matter, with a line of JSON for each.
  ///
  /// - Parameters:
  ///   - path: a published session, `OUTPUT/SESSION`.
  ///   - clip: the part of it; its speed does not matter.
  ///   - target: a directory to make, a `.zip` or a `.jsonl` to write or replace.
  ///   - isKept: whether the target goes where `delete` finds it. Else it may not lie in the output of the session.
  ///   - decoders: the processes that decode segments; nil to decode trusted segments in this process.
  ///   - progress: called with the number of pictures done and of all; an error that it throws ends the work.
  /// - Throws: ``BadTarget``, ``BadClip``, ``TooManyTokens``; ``BadSession`` if a segment is missing or damaged; ``DiskError``.
  package static func write(
    of path: String, showing clip: Clip, _ choice: PictureChoice, to target: String, as format: ImageFormat,
    isKept: Bool = false, decoders: DecoderForkServer?, progress: (Int, Int) throws -> Void
  ) throws -> WrittenPictures {
    let directory = try SessionDirectory(at: path, decoders: decoders)
    let output = DurableFile.parentDirectory(of: directory.path)
    let sink = try PictureTarget(ofName: target).open(target, outside: isKept ? nil : output)
    let part = try directory.segments(of: clip)
    var found = CapturedPicture.all(of: part)
    if choice.needsChanges {
      let total = found.count
      found = try PictureWalk(directory, part.segments).withChanges(found) { try progress(0, total) }
    }
    let pictures = try SessionPictures(of: directory, part, choice, from: found)
    guard !pictures.chosen.isEmpty else {
      throw BadClip(
        session: directory.session, fault: .gap, fromMs: part.range.lowerBound, toMs: part.range.upperBound,
        bounds: part.bounds)
    }
    try pictures.write(to: sink, as: format, progress)
    return WrittenPictures(
      file: sink.target, session: directory.session.description, pictures: pictures.chosen.count,
      captures: pictures.captures, tokens: pictures.chosen.reduce(0) { $0 + choice.tokens(of: $1) },
      bytes: try sink.finish(), part: part.range, warnings: part.warnings)
  }

  /// Decodes the pictures of one segment after the other: first to see where they changed, then in the form of their images.
  private func write(to sink: any PictureSink, as format: ImageFormat, _ progress: (Int, Int) throws -> Void) throws {
    let walk = PictureWalk(directory, part.segments)
    let images = SegmentPictures(directory.reader, isRGB: format == .png)
    var reader = PictureFactsReader(directory, part.segments)
    var done = 0
    var names: Set<String> = []
    try walk.forEachSegment(of: chosen) { picture, decoded in
      try progress(done, chosen.count)
      return PictureDifference(of: picture, decoded)
    } _: { pictures, differences in
      guard let first = pictures.first else { return }
      let segment = part.segments[first.segment]
      let size = first.size.fitted(maxSide: choice.maxSide)
      let box = choice.maxSide.map { PixelSize(width: $0, height: $0) } ?? first.size
      var rest = zip(pictures, differences).makeIterator()
      try images.forEachPicture(
        of: segment, bytes: try directory.video(of: segment), frames: pictures.map(\.frame), fitting: box
      ) { image in
        guard let (picture, difference) = rest.next() else { return }
        let facts = try reader.facts(of: picture, changed: difference, as: size) { try progress(done, chosen.count) }
        // Manifests that were not written by this program may have two captures of one time.
        var name = PictureFacts.name(picture.timeMs)
        if !names.insert(name).inserted { name += "-\(done)" }
        try sink.add("\(name).\(format.ending)", try format.image(of: image), as: format, facts.members)
        done += 1
        try progress(done, chosen.count)
      }
    }
  }

  /// Returns a line of JSON for each picture, with its address below that of the session, and nothing that has to be decoded.
  ///
  /// - Parameter progress: called for each manifest of each picture; an error that it throws ends the work.
  func lines(progress: () throws -> Void) throws -> [UInt8] {
    var reader = PictureFactsReader(directory, part.segments)
    var text: [UInt8] = []
    for picture in chosen {
      let facts = try reader.facts(
        of: picture, changed: nil, as: picture.size.fitted(maxSide: choice.maxSide), progress: progress)
      let side = choice.maxSide.map { "&max-side=\($0)" } ?? ""
      let address = "frame.jpg?t=\(picture.shownMs.lowerBound)\(side)"
      text += JSONValue.object(facts.members.merging(["url": .string(address)]) { $1 }).bytes() + [UInt8(ascii: "\n")]
    }
    return text
  }
}
