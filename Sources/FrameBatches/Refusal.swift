// The reason why a file or a frame is not shown: its fault, and a remedy that may be that of all frames of a batch.

import FileSystem

/// A file of a frame, or the reason why it cannot be used.
package enum FrameFile {
  case bytes([UInt8])
  case refused(Refusal)
}

package struct Refusal: Sendable, Equatable, ExpressibleByStringInterpolation {
  /// A remedy that many frames can have in common.
  package enum Remedy: Sendable, Equatable {
    /// Raise limits.
    case raise(LimitAdvice)
    /// Make the picture smaller than any limit.
    case scale
    /// Convert the file from this format.
    case convert(OtherImage)

    package var text: String {
      switch self {
      case .raise(let advice): advice.text
      case .scale: "scale it to at most \(Limits.maximumSide) a side"
      case .convert(let image): image.conversion
      }
    }
  }

  package let fault: String
  package let remedy: Remedy?

  package init(_ fault: String, _ remedy: Remedy?) { (self.fault, self.remedy) = (fault, remedy) }

  package init(stringLiteral fault: String) { self.init(fault, nil) }

  /// - Parameter isImage: whether the file has a format; otherwise it is a file of raw pixels.
  package init(_ file: FileRefusal, isImage: Bool, _ limits: Limits) {
    let advice = file.size.flatMap { LimitAdvice(fileOf: $0, isImage: isImage, limits) }
    self.init(file.description, advice.map(Remedy.raise))
  }

  /// The fault and the remedy.
  package var text: String { remedy.map { "\(fault); \($0.text)" } ?? fault }

  /// Names the place before the fault.
  package func at(_ place: String) -> Refusal { Refusal("\(place): \(fault)", remedy) }
}
