// Converts pictures with an ICC profile to sRGB, through Little CMS. Most profiles describe sRGB, under many names; their
// pictures need no conversion.

import CFFmpeg
import CLittleCMS

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

/// A transform to sRGB, for pixels of three and of four bytes. It is safe: it owns the transforms.
@safe final class ColourTransform {
  /// Bytes of a pixel.
  private static let sizes = [3, 4]
  /// By bytes of a pixel.
  private var transforms: [Int: cmsHTRANSFORM] = unsafe [:]

  /// Returns nil when the profile lacks data that a transform needs.
  fileprivate init?(from profile: cmsHPROFILE) {
    guard let standard = unsafe cmsCreate_sRGBProfile() else { return nil }
    defer { unsafe cmsCloseProfile(standard) }
    let isGrey = unsafe cmsGetColorSpace(profile) == cmsSigGrayData
    for size in Self.sizes {
      let pixels = clcms_rgb(Int32(size))
      // All three bytes of a grey pixel are equal.
      unsafe transforms[size] = cmsCreateTransform(
        profile, isGrey ? clcms_grey(Int32(size)) : pixels, standard, pixels, UInt32(INTENT_PERCEPTUAL), 0)
      if unsafe transforms[size] == nil { return nil }
    }
  }

  deinit {
    for size in Self.sizes { if let transform = unsafe transforms[size] { unsafe cmsDeleteTransform(transform) } }
  }

  /// Whether all colours of a coarse grid keep their values, except for rounding.
  fileprivate var changesNothing: Bool {
    let steps = stride(from: 0, through: 255, by: 15).map { UInt8($0) }
    let colours = steps.flatMap { red in steps.flatMap { green in steps.flatMap { [red, green, $0] } } }
    var changed = colours
    unsafe cmsDoTransform(transforms[3], colours, &changed, UInt32(colours.count / 3))
    return zip(colours, changed).allSatisfy { abs(Int($0) - Int($1)) <= 1 }
  }

  /// Converts the colours of RGB24 or RGBA in place; alpha does not change.
  func apply(to picture: FrameBuffer) throws(FFmpegError) {
    try picture.makeWritable()
    let (start, stride) = unsafe picture.plane(0)
    unsafe cmsDoTransformLineStride(
      transforms[picture.format == AV_PIX_FMT_RGBA ? 4 : 3], start, start, UInt32(picture.width),
      UInt32(picture.height), UInt32(stride), UInt32(stride), 0, 0)
  }
}
