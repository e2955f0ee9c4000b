// Converts pictures with an ICC profile to sRGB, through Little CMS. Most profiles describe sRGB, under many names; their
// pictures need no conversion.

import CFFmpeg
import CLittleCMS
import CPixels

/// Finds the conversions of pictures to sRGB. Not thread-safe: use one for each thread.
final class ColourManagement {
  enum Conversion {
    /// The picture has no profile, or the profile of sRGB.
    case none
    case transform(ColourTransform)
    /// The profile cannot be used, for this reason.
    case unusable(String)
  }

  /// Maximum size of a profile; larger ones have tables for printers.
  private static let maxProfileBytes = 4 << 20
  /// The latest profile: all images of a recorder have the same.
  private var previous: (profile: [UInt8], isGrey: Bool, conversion: Conversion)?

  /// Makes a profile once: the C library then loads its time zone, which it cannot in the sandbox.
  static func warmUp() { if let profile = unsafe cmsCreate_sRGBProfile() { unsafe cmsCloseProfile(profile) } }

  func conversion(of picture: FrameBuffer) -> Conversion {
    guard let profile = picture.colourProfile else { return .none }
    let isGrey = picture.isGrey
    if let previous, previous.profile == profile, previous.isGrey == isGrey { return previous.conversion }
    let conversion = Self.conversion(from: profile, isGrey: isGrey)
    previous = (profile, isGrey, conversion)
    return conversion
  }

  private static func conversion(from profile: [UInt8], isGrey: Bool) -> Conversion {
    guard profile.count <= maxProfileBytes else { return .unusable("\(profile.count) bytes") }
    guard let source = unsafe cmsOpenProfileFromMem(profile, UInt32(profile.count)) else {
      return .unusable("not an ICC profile")
    }
    defer { unsafe cmsCloseProfile(source) }
    // These tags have programs that may run one stored step many times: a small file can take minutes.
    let programs = [cmsSigDToB0Tag, cmsSigDToB1Tag, cmsSigDToB2Tag, cmsSigDToB3Tag]
    guard programs.allSatisfy({ unsafe cmsIsTag(source, $0) == 0 }) else {
      return .unusable("it has floating-point steps")
    }
    switch unsafe cmsGetColorSpace(source) {
    case cmsSigRgbData: break
    case cmsSigGrayData where isGrey: break
    default: return .unusable("for other kinds of colours than the picture's")
    }
    guard let transform = unsafe ColourTransform(from: source) else { return .unusable("Little CMS cannot use it") }
    return transform.changesNothing ? .none : .transform(transform)
  }
}

/// A transform to sRGB. It converts each colour of a screen once: Little CMS takes 117 instructions a pixel. It is safe: it owns the
/// transform and the table of colours. Not thread-safe: use one for each thread.
@safe final class ColourTransform {
  private let transform: cmsHTRANSFORM
  private let known: KnownColours

  /// Returns nil when the profile lacks data that a transform needs.
  fileprivate init?(from profile: cmsHPROFILE) {
    guard let standard = unsafe cmsCreate_sRGBProfile() else { return nil }
    defer { unsafe cmsCloseProfile(standard) }
    let isGrey = unsafe cmsGetColorSpace(profile) == cmsSigGrayData
    // All three bytes of a grey pixel are equal.
    let pixels = isGrey ? clcms_grey(3) : clcms_rgb(3)
    guard
      let transform = unsafe cmsCreateTransform(
        profile, pixels, standard, clcms_rgb(3), UInt32(INTENT_PERCEPTUAL), 0)
    else { return nil }
    guard let known = try? KnownColours() else {
      unsafe cmsDeleteTransform(transform)
      return nil
    }
    unsafe (self.transform, self.known) = (transform, known)
  }

  deinit {
    unsafe cmsDeleteTransform(transform)
  }

  /// Whether all colours of a coarse grid keep their values, except for rounding.
  fileprivate var changesNothing: Bool {
    let steps = stride(from: 0, through: 255, by: 15).map { UInt8($0) }
    let colours = steps.flatMap { red in steps.flatMap { green in steps.flatMap { [red, green, $0] } } }
    var changed = colours
    unsafe cmsDoTransform(transform, colours, &changed, UInt32(colours.count / 3))
    return zip(colours, changed).allSatisfy { abs(Int($0) - Int($1)) <= 1 }
  }

  /// Converts the colours of RGB24 or RGBA in place; alpha does not change.
  func apply(to picture: FrameBuffer) throws(FFmpegError) {
    try picture.makeWritable()
    let (start, stride) = unsafe picture.plane(0)
    let size = picture.format == AV_PIX_FMT_RGBA ? 4 : 3
    for row in 0..<picture.height {
      unsafe cpx_recolour(
        known.table, start + row * stride, picture.width, size,
        { unsafe cmsDoTransform($0, $1, $2, UInt32(truncatingIfNeeded: $3)) }, transform)
    }
  }
}
