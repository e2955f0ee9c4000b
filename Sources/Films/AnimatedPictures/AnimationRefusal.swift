import Encoding
import FileSystem

/// A film that cannot be an animated picture.
package struct AnimationRefusal: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .usage }
  package enum Fault: Equatable {
    /// More pictures than ``AnimationWriter/maximumPictures``.
    case pictures(Int)
    /// More pixels in all pictures than ``AnimationPlan/maximumRequestedPixels``.
    case pixels(Int)
    /// More bytes than ``AnimationWriter/maximumBytes``.
    case bytes(maxSide: Int)
    /// Pictures that follow one another too fast. The speed is one at which they do not; nil if there is none.
    case pace(FilmSpeed?)
  }

  package let format: AnimationFormat
  package let fault: Fault

  package var cause: String {
    switch fault {
    case .pictures(let count):
      "\(count) pictures, and a \(format.name) has at most \(AnimationWriter.maximumPictures)"
    case .pixels(let count):
      "\(count) pixels in all pictures, and a request has at most \(AnimationPlan.maximumRequestedPixels)"
    case .bytes: "more than \(AnimationWriter.maximumBytes) bytes"
    case .pace:
      "pictures follow one another faster than browsers show a \(format.name) (a picture each \(shortestMs) ms)"
    }
  }

  /// The remedy, in the words of commands.
  package var advice: String {
    switch fault {
    case .pictures: "cut out a part with --from and --to-time, or write an MP4"
    case .pixels: "give a lower --max-side, cut out a part with --from and --to-time, or write an MP4"
    case .bytes(let maxSide):
      (maxSide > AnimationFormat.defaultSide ? "give a lower --max-side, " : "")
        + "cut out a part with --from and --to-time, or write an MP4"
    case .pace(let speed): (speed.map { "give --speed \($0) or less, or " } ?? "") + "write an MP4"
    }
  }

  /// For a request of `serve`.
  package var description: String {
    let remedy =
      switch fault {
      case .pictures: "name a part with from and to"
      case .pixels, .bytes: "name a part with from and to, or a lower max-side"
      case .pace(let speed): speed.map { "name a speed of \($0) or less" } ?? "it is an MP4 only"
      }
    return "make the \(format.name): \(cause); \(remedy), or take the MP4"
  }

  private var shortestMs: Int64 { format == .gif ? 20 : 11 }
}
