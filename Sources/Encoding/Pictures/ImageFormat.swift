/// A format of image files that are written.
package enum ImageFormat: Sendable {
  case png, jpeg

  /// - Parameter name: the name of a file; its ending tells the format.
  /// - Returns: nil for other endings.
  package init?(ofName name: String) {
    let name = name.lowercased()
    if name.hasSuffix(".png") {
      self = .png
    } else if name.hasSuffix(".jpg") || name.hasSuffix(".jpeg") {
      self = .jpeg
    } else {
      return nil
    }
  }
}
