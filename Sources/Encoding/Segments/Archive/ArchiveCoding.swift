// How archives are coded: slowly, each picture by those of ten minutes before it. Measured in `Benchmarks/LIMITS.md`.

import CFFmpeg
import Glibc

/// The coding of an archive.
package enum ArchiveCoding: String, Sendable, CaseIterable {
  /// SVT-AV1: the fewest bytes.
  case av1
  /// x264: for players without AV1.
  case h264

  /// The maximum length of an archive's segment, in milliseconds.
  package static let segmentMs: Int64 = 600_000

  /// The smallest side that SVT-AV1 takes, in pixels.
  package static let smallestAV1Side = 64

  /// The major versions of libavcodec whose SVT-AV1 was measured: 1.4.1 in Debian 12, 2.3.0 in Debian 13.
  private static let measuredMajors: Set<UInt32> = [59, 61]

  /// The libavcodec and the encoders that this process has.
  package struct Encoders: Sendable {
    package let major: UInt32
    package let hasAV1: Bool

    package init(major: UInt32, hasAV1: Bool) { (self.major, self.hasAV1) = (major, hasAV1) }

    /// Those of this process.
    package static var available: Encoders {
      unsafe Encoders(
        major: avcodec_version() >> 16,
        hasAV1: avcodec_find_encoder_by_name(ArchiveCoding.av1.codec) != nil
          && avcodec_find_decoder(AV_CODEC_ID_AV1) != nil)
    }

    /// Whether SVT-AV1 is there, in a version that was measured.
    fileprivate var isMeasured: Bool { hasAV1 && measuredMajors.contains(major) }
  }

  /// Chooses the coding.
  ///
  /// - Parameters:
  ///   - wanted: nil for the one with the fewest bytes.
  ///   - shortestSide: of all pictures, in pixels.
  /// - Returns: the coding, and the reason for it if another one has fewer bytes; nil if this system cannot code what is wanted.
  package static func choice(
    _ wanted: ArchiveCoding?, shortestSide: Int, _ encoders: Encoders = .available
  ) -> (coding: ArchiveCoding, reason: String?)? {
    let isLarge = shortestSide >= smallestAV1Side
    switch wanted {
    case .h264: return (.h264, "--archive-codec says so")
    case .av1: return encoders.hasAV1 && isLarge ? (.av1, nil) : nil
    case nil:
      if !encoders.hasAV1 { return (.h264, "this libavcodec has no SVT-AV1") }
      if !encoders.isMeasured { return (.h264, "SVT-AV1 was not measured with libavcodec \(encoders.major)") }
      return isLarge ? (.av1, nil) : (.h264, "SVT-AV1 takes no picture of less than \(smallestAV1Side) pixels a side")
    }
  }

  /// Keeps SVT-AV1 from printing more than errors on standard error. Call it before the process has threads.
  package static func silenceEncoder() { _ = unsafe setenv("SVT_LOG", "1", 0) }

  /// The name of libavcodec's encoder.
  package var codec: String { self == .av1 ? "libsvtav1" : "libx264" }

  var preset: String { self == .av1 ? "4" : "veryslow" }

  /// The constant rate factor at which corpus sessions are about as like as with `reencode --quality balanced`.
  var rateFactor: Double { self == .av1 ? 48 : 23 }

  /// - x264: one reference and no reordered pictures, as in all segments, so that repeats and cuts work (``SkipSliceWriter``); motion of
  ///   up to 512 pixels, because pages scroll; no 8×8 transform, as in all segments; likeness and not the look of noise (`psy`)
  /// - SVT-AV1: one key frame, one thread, tools for screen contents where they help
  var parameters: String {
    switch self {
    case .av1: "keyint=-1:lp=1:scm=2"
    case .h264:
      "ref=1:weightp=0:scenecut=0:keyint=infinite:bframes=0:sliced-threads=0:8x8dct=0:psy=0:merange=512"
    }
  }

  /// The bytes to expect, as a share of those of `balanced`, for a message.
  package var expectedShare: String { self == .av1 ? "0.25 to 0.45" : "0.4 to 0.5" }

  package var name: String { self == .av1 ? "AV1 (SVT-AV1)" : "H.264 (x264)" }
}
