// Films of other forms than MP4: animated pictures and posters.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import Sessions

extension Stitching {
  /// Facts of a film's file.
  package typealias Written = (bytes: Int, pictures: Int?, merged: Int, size: PixelSize?)

  /// Writes a film.
  ///
  /// - Parameters:
  ///   - target: its name, for errors.
  ///   - progress: called with the number of segments or pictures done and of all.
  static func write(
    _ plan: StitchPlan, of videos: some SegmentVideos, as form: FilmForm, to file: OutputFile, named target: String,
    progress: (Int, Int) throws -> Void
  ) throws -> Written {
    switch form {
    case .mp4: return (try write(plan, of: videos, to: file, progress: progress), nil, 0, nil)
    case .poster(let format, let maxSide):
      return try write(posterOf: plan, of: videos, as: format, maxSide: maxSide, to: file)
    case .animation(let format, let maxSide):
      do {
        return try write(plan, of: videos, as: format, maxSide: maxSide, to: file, progress: progress)
      } catch let refusal as AnimationRefusal {
        throw BadTarget(path: target, cause: refusal.cause, advice: refusal.advice)
      } catch let missing as MissingEncoder {
        throw BadTarget(path: target, cause: missing.cause, advice: missing.advice)
      }
    }
  }

  /// Writes a film as an animated picture.
  ///
  /// - Parameter maxSide: the maximum of a picture's longer side, in pixels.
  /// - Throws: ``AnimationRefusal``, ``MissingEncoder``, ``BadSession``, ``DiskError``.
  package static func write(
    _ plan: StitchPlan, of videos: some SegmentVideos, as format: AnimationFormat, maxSide: Int, to file: OutputFile,
    progress: (Int, Int) throws -> Void
  ) throws -> Written {
    // As in an MP4. It bounds the number of pictures that a gap becomes.
    for part in plan.parts where plan.speed.film(part.filmGapMs) > MediaTime.maximumSampleMs {
      throw SegmentSamples.unreadableHold(part.segment.file)
    }
    let pictures = AnimationPlan(plan)
    var writer = try AnimationWriter(file, as: format, pictures, maxSide: maxSide)
    let bytes = try writer.write(from: videos, progress: progress)
    return (bytes, writer.pictures, writer.merged + pictures.idle, pictures.size(maxSide: maxSide))
  }

  /// Writes the picture with which a film begins.
  ///
  /// - Parameter maxSide: the maximum of its longer side in pixels; nil to keep its size.
  /// - Throws: ``BadSession``, ``DiskError``.
  static func write(
    posterOf plan: StitchPlan, of videos: some SegmentVideos, as format: ImageFormat, maxSide: Int?,
    to file: OutputFile
  ) throws -> Written {
    let first = AnimationPlan(plan).parts[0]
    let own = PixelSize(width: first.segment.width, height: first.segment.height)
    let size = maxSide.map { own.fitted(into: PixelSize(width: $0, height: $0)) } ?? own
    let image = FilmMark.marking(
      try videos.image(of: first.segment, frame: first.pictures[0].frame, fitting: size, as: format))
    try file.write(image, at: 0)
    return (image.count, 1, 0, size)
  }
}
