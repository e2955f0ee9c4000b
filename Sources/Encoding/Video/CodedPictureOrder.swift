import CFFmpeg
import FileSystem
import FrameBatches
import ISOMedia

/// A picture of a published segment as the decoder has it, for ``KeyPictureWriter``.
package struct CodedPictureOrder: Equatable {
  /// When its sample begins, in ticks from the segment's start.
  let start: Int64
  /// The size in whole macroblocks.
  let size: PixelSize

  package init(start: Int64, columns: Int, rows: Int) {
    self.start = start
    size = PixelSize(width: 16 * columns, height: 16 * rows)
  }

  /// The bytes of its planes.
  var bytes: Int { FrameBuffer.packedBytes(size, isRGB: false) }

  /// Decodes a segment's video up to the picture.
  ///
  /// - Parameters:
  ///   - name: names the file in errors.
  ///   - step: called for each sample that is read.
  func planes(of file: any ByteSource, _ name: String, step: @escaping () -> Void = {}) throws -> [UInt8] {
    let film = try VideoPictures.ofSegment(file, name, isCropped: false, step: step)
    guard let picture = try film.picture(at: start), picture.size == size, picture.format == AV_PIX_FMT_YUV420P else {
      throw BadSession(name, "no picture of its size at its instant")
    }
    return picture.packed(isRGB: false)
  }
}
