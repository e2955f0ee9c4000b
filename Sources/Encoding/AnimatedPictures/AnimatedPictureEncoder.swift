/// Encodes the pictures of an animated picture, each as the part that changes on screen. It loops for ever.
package protocol AnimatedPictureEncoder: AnyObject {
  /// The number of bytes before the first picture, once that one is encoded.
  var headBytes: Int { get }
  /// The bytes behind the last picture.
  var tail: [UInt8] { get }
  /// Returns the bytes before the first picture, once all pictures are encoded.
  ///
  /// - Parameter pictureBytes: those of all pictures.
  func head(pictureBytes: Int) -> [UInt8]
  /// Returns a picture as it is stored; nil if it looks like the one before.
  ///
  /// - Parameter picture: RGB24, not larger than the canvas.
  func encode(_ picture: FrameBuffer) throws -> StoredPicture?
  /// Returns a picture that changes nothing: a hold may be too long for one picture.
  func unchanged() throws -> StoredPicture
}

extension [UInt8] {
  /// Appends the lowest bytes of a number, the lowest first.
  mutating func append(littleEndian value: Int, bytes count: Int) {
    for place in 0..<count { append(UInt8(truncatingIfNeeded: value >> (8 * place))) }
  }
}
