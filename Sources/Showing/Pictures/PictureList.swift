// The list of a session's pictures that `serve` makes.

import Encoding
import FileSystem
import Films
import FrameBatches
import Sessions

/// The pictures of a part of a session that matter, to be listed. The work of each step has a bound.
package struct PictureList {
  /// Maximum number of pictures that are decoded for a list.
  package static let decodedPictures = 1_000

  private let directory: SessionDirectory
  private let part: ClippedSession
  private let choice: PictureChoice
  private var pictures: [CapturedPicture]
  /// Whether pictures have to be decoded before the list is made.
  package private(set) var needsDecoding: Bool
  /// The number of pictures that the choice has, but not the list.
  package private(set) var leftOut = 0

  /// - Throws: ``TooManyUnknownChanges``.
  init(of directory: SessionDirectory, _ part: ClippedSession, _ choice: PictureChoice) throws(TooManyUnknownChanges) {
    (self.directory, self.part, self.choice) = (directory, part, choice)
    pictures = CapturedPicture.all(of: part)
    let isLong = pictures.count > PictureChoice.servedPictures
    let walk = PictureWalk(directory, part.segments)
    let unknown = choice.needsChanges || isLong ? pictures.count(where: walk.isComparable) : 0
    guard unknown <= Self.decodedPictures else { throw TooManyUnknownChanges(pictures: unknown) }
    needsDecoding = unknown > 0
  }

  /// Decodes pictures whose changes the manifests do not tell, as the command does.
  ///
  /// - Parameter progress: called for each picture; an error that it throws ends the work.
  /// - Throws: ``BadSession`` if a video is missing or damaged; `DiskError`.
  package mutating func decode(progress: () throws -> Void) throws {
    pictures = try PictureWalk(directory, part.segments).withChanges(pictures, progress: progress)
    needsDecoding = false
  }

  /// Returns a line of JSON for each picture, in the order of their captures. Of a long list, there are only the
  /// ``PictureChoice/servedPictures`` largest changes.
  ///
  /// - Parameter progress: called for each manifest; an error that it throws ends the work.
  /// - Throws: ``TooManyTokens``; ``BadSession`` if the session has changed since; `DiskError`.
  package mutating func lines(progress: () throws -> Void) throws -> [UInt8] {
    var chosen = try SessionPictures(of: directory, part, choice, from: pictures)
    let count = chosen.count
    if count > PictureChoice.servedPictures {
      var limited = choice
      limited.max = PictureChoice.servedPictures
      chosen = try SessionPictures(of: directory, part, limited, from: pictures)
    }
    leftOut = count - chosen.count
    return try chosen.lines(progress: progress)
  }
}

/// The manifests do not tell the changes of too many pictures.
package struct TooManyUnknownChanges: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .usage }
  let pictures: Int

  package var description: String {
    "\(pictures) pictures of this part would have to be decoded to see what changed, more than the limit of "
      + "\(PictureList.decodedPictures); choose a shorter part with from and to"
  }
}

extension SessionPlayback {
  /// Returns the list of the pictures that matter.
  ///
  /// - Parameter clip: the part of the session; its speed does not matter.
  /// - Throws: ``BadClip``, ``TooManyUnknownChanges``; `BadSession` if a manifest cannot be read.
  package func pictures(of clip: Clip, _ choice: PictureChoice) throws -> PictureList {
    let known = Dictionary(segments.map { ($0.startMs, $0) }) { first, _ in first }
    let part = try ClippedSession(
      clip, of: session, first: segments[0].startMs, last: segments[segments.count - 1], starts: segments.map(\.startMs)
    ) { start in
      guard let segment = known[start] else { throw BadSession(SegmentName.manifest(start), "it cannot be read") }
      return segment
    }
    return try PictureList(of: directory, part, choice)
  }
}
