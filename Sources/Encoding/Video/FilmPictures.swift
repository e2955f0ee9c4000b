// The pictures of a film, wherever they are decoded.

import FileSystem
import FrameBatches

/// The form in which an encoder gets a video's picture: without the padding that makes its sides even, upright, not too large.
package struct VideoPictureForm: Equatable {
  /// The size of the stored picture without its padding, before it is turned.
  package let size: PixelSize
  package let quarterTurns: Int
  /// Maximum length of a side; nil for any length.
  package let maxSide: Int?

  package init(size: PixelSize, quarterTurns: Int, maxSide: Int?) {
    self.size = size
    self.quarterTurns = quarterTurns
    self.maxSide = maxSide
  }

  /// The size of the picture in this form.
  package var result: PixelSize {
    let fitted = size.fitted(maxSide: maxSide)
    return quarterTurns % 2 == 0 ? fitted : PixelSize(width: fitted.height, height: fitted.width)
  }
}

/// A film's pictures.
package protocol FilmPictures: AnyObject {
  /// Returns the picture that is shown from `pts` on; nil if there is none. Calls are in the order of `pts`.
  func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture?
}
