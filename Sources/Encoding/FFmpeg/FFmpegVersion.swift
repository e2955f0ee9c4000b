import CFFmpeg

/// The FFmpeg that this process uses.
package enum FFmpegVersion {
  /// The version of libavcodec. That of x264 depends on the build of libavcodec.
  package static var libavcodec: String {
    let version = avcodec_version()
    return "\(version >> 16).\(version >> 8 & 255).\(version & 255)"
  }

  /// The version of the release, as its builder calls it: `7.1.1-1+b1`.
  package static var release: String { unsafe String(cString: av_version_info()) }
}
