import Encoding
import FileSystem
import FrameBatches

extension Reencoding {
  /// Chooses the coding of an archive.
  static func choice(
    _ options: Options, _ source: ArchiveSource, _ path: String
  ) throws(BadSession) -> (coding: ArchiveCoding, notice: String) {
    let side = source.shortestSide(atMost: options.maxSide)
    let choice = ArchiveCoding.choice(options.archiveCoding, shortestSide: side, options.encoders)
    guard let (coding, reason) = choice else {
      throw BadSession(
        path,
        options.encoders.hasAV1
          ? "pictures of \(side) pixels a side, and SVT-AV1 takes no less than \(ArchiveCoding.smallestAV1Side)"
          : "this libavcodec has no SVT-AV1, or cannot decode AV1",
        advice: "use --archive-codec h264")
    }
    return (
      coding,
      "archive in \(coding.name)\(reason.map { ", because \($0)" } ?? ""): "
        + "expect \(coding.expectedShare) of the bytes of --quality balanced"
    )
  }
}
