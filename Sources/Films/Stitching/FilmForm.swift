import Encoding
import FrameBatches
import Sessions

/// The form of a film's file.
package enum FilmForm: Sendable, Equatable {
  case mp4
  /// - Parameter maxSide: the maximum of the longer side, in pixels.
  case animation(AnimationFormat, maxSide: Int)
  /// The picture with which the film begins. A `maxSide` of nil keeps its size.
  case poster(ImageFormat, maxSide: Int?)

  /// - Parameters:
  ///   - file: its ending tells the form; an MP4 may have any other ending.
  ///   - maxSide: the maximum of the longer side in pixels; nil for that of the form. An MP4 has the size of its segments.
  package init(ofName file: String, maxSide: Int?) {
    let name = file.lowercased()
    if let format = AnimationFormat.allCases.first(where: { name.hasSuffix(".\($0.rawValue)") }) {
      self = .animation(format, maxSide: maxSide ?? AnimationFormat.defaultSide)
    } else if let format = ImageFormat(ofName: file) {
      self = .poster(format, maxSide: maxSide)
    } else {
      self = .mp4
    }
  }

  var isPoster: Bool { if case .poster = self { true } else { false } }

  /// - Throws: ``BadTarget`` if the machine's libraries cannot write it.
  package func requireEncoder(for target: String) throws(BadTarget) {
    guard case .animation(let format, _) = self else { return }
    do {
      try format.requireEncoder()
    } catch {
      throw BadTarget(path: target, cause: error.cause, advice: error.advice)
    }
  }
}
