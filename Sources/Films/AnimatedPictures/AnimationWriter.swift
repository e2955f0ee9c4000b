// Writes a film as an animated picture, picture by picture. Memory does not depend on the film's length.

import Encoding
import FileSystem
import FrameBatches
import Sessions

struct AnimationWriter {
  /// The most captured pictures of an animated picture: five hours and a half at one a second.
  static let maximumPictures = 20_000
  /// The maximum size of the file.
  static let maximumBytes = 512 << 20

  private let file: OutputFile
  private let format: AnimationFormat
  private let plan: AnimationPlan
  private let maxSide: Int
  private let encoder: any AnimatedPictureEncoder
  private var clock: AnimationClock<StoredPicture>
  private var end = 0
  /// The number of pictures in the file, and of captured ones that look like the one before: together all of the plan.
  private(set) var pictures = 0
  private(set) var merged = 0

  /// - Parameter maxSide: the maximum of a picture's longer side, in pixels.
  /// - Throws: ``AnimationRefusal``, ``MissingEncoder``.
  init(_ file: OutputFile, as format: AnimationFormat, _ plan: AnimationPlan, maxSide: Int) throws {
    try plan.requireFewPictures(as: format)
    (self.file, self.format, self.plan, self.maxSide) = (file, format, plan, maxSide)
    encoder = try format.encoder(plan.size(maxSide: maxSide))
    clock = AnimationClock(format)
  }

  /// Writes all pictures.
  ///
  /// - Parameters:
  ///   - videos: those of the segments.
  ///   - progress: called with the number of pictures done and of all; an error that it throws ends the work.
  /// - Returns: the size of the file in bytes.
  mutating func write(from videos: some SegmentVideos, progress: (Int, Int) throws -> Void) throws -> Int {
    let segments = SegmentPictures(videos.reader, isRGB: true)
    let (box, count) = (PixelSize(width: maxSide, height: maxSide), plan.count)
    var done = 0
    for part in plan.parts {
      var rest = part.pictures[...]
      try segments.forEachPicture(
        of: part.segment, bytes: videos.video(of: part.segment), frames: part.pictures.map(\.frame), fitting: box
      ) { picture in
        try append(picture, at: rest.removeFirst().startMs)
        done += 1
        try progress(done, count)
      }
    }
    return try finish()
  }

  private mutating func append(_ picture: FrameBuffer, at startMs: Int64) throws {
    guard let stored = try encoder.encode(picture) else {
      merged += 1
      return
    }
    if end == 0 { end = encoder.headBytes }
    try write(clock.append(stored, at: format.units(plan.ticks(startMs))))
  }

  private mutating func finish() throws -> Int {
    try write(clock.finish(at: format.units(plan.ticks(plan.lengthMs))))
    try put(encoder.tail)
    try file.write(encoder.head(pictureBytes: end - encoder.headBytes - encoder.tail.count), at: 0)
    return end
  }

  private mutating func write(_ held: [AnimationClock<StoredPicture>.Held]?) throws {
    guard let held else { throw AnimationRefusal(format: format, fault: .pace(plan.showableSpeed(as: format))) }
    for (picture, hold) in held {
      pictures += 1
      let pieces = format.pieces(of: hold)
      try put(picture.held(for: pieces[0]))
      guard pieces.count > 1 else { continue }
      let unchanged = try encoder.unchanged()
      for piece in pieces.dropFirst() { try put(unchanged.held(for: piece)) }
    }
  }

  private mutating func put(_ bytes: [UInt8]) throws {
    guard end + bytes.count <= Self.maximumBytes else {
      throw AnimationRefusal(format: format, fault: .bytes(maxSide: maxSide))
    }
    try file.write(bytes, at: end)
    end += bytes.count
  }
}
