// Pictures with an ICC profile come out in sRGB, through Little CMS. Most profiles are sRGB's own, under one name or
// another; their pictures are left alone.

import CFFmpeg
import CLittleCMS

/// From a picture's own colours to sRGB. Not thread-safe: one a thread.
final class ColourManagement {
  /// The conversion that an image's profile asks for.
  enum Demand {
    /// Nothing: it has none, or means sRGB.
    case none
    case transform(ColourTransform)
    /// It has one that cannot be used, for this reason.
    case unusable(String)
  }

  /// Larger ones hold tables for printers.
  private static let maxProfileBytes = 4 << 20
  /// The images of a recorder have all the same.
  private var previous: (profile: [UInt8], isGrey: Bool, demand: Demand)?

  /// Makes a profile once: the C library then looks up its time zone, which it cannot from where it may open no file.
  static func warmUp() { if let profile = cmsCreate_sRGBProfile() { cmsCloseProfile(profile) } }

  func demand(of picture: FrameBuffer) -> Demand {
    guard let profile = picture.colourProfile else { return .none }
    let isGrey = picture.isGrey
    if let previous, previous.profile == profile, previous.isGrey == isGrey { return previous.demand }
    let demand = Self.demand(of: profile, isGrey: isGrey)
    previous = (profile, isGrey, demand)
    return demand
  }

  private static func demand(of profile: [UInt8], isGrey: Bool) -> Demand {
    guard profile.count <= maxProfileBytes else { return .unusable("\(profile.count) bytes") }
    guard let source = cmsOpenProfileFromMem(profile, UInt32(profile.count)) else {
      return .unusable("not an ICC profile")
    }
    defer { cmsCloseProfile(source) }
    // Programs of steps that need not be in the file as often as they are run: a small one can take minutes.
    let programs = [cmsSigDToB0Tag, cmsSigDToB1Tag, cmsSigDToB2Tag, cmsSigDToB3Tag]
    guard programs.allSatisfy({ cmsIsTag(source, $0) == 0 }) else { return .unusable("it has floating-point steps") }
    switch cmsGetColorSpace(source) {
    case cmsSigRgbData: break
    case cmsSigGrayData where isGrey: break
    default: return .unusable("for other kinds of colours than the picture's")
    }
    guard let transform = ColourTransform(from: source) else { return .unusable("Little CMS cannot use it") }
    return transform.changesNothing ? .none : .transform(transform)
  }
}

/// A transform to sRGB, for pixels of three and of four bytes.
final class ColourTransform {
  /// By bytes a pixel.
  private let transforms: [Int: cmsHTRANSFORM]

  /// nil when the profile lacks what a transform needs.
  fileprivate init?(from profile: cmsHPROFILE) {
    guard let standard = cmsCreate_sRGBProfile() else { return nil }
    defer { cmsCloseProfile(standard) }
    let isGrey = cmsGetColorSpace(profile) == cmsSigGrayData
    var made: [Int: cmsHTRANSFORM] = [:]
    for size in [3, 4] {
      let pixels = clcms_rgb(Int32(size))
      // Of grey, all three bytes are the same.
      let transform = cmsCreateTransform(
        profile, isGrey ? clcms_grey(Int32(size)) : pixels, standard, pixels, UInt32(INTENT_PERCEPTUAL), 0)
      guard let transform else {
        for transform in made.values { cmsDeleteTransform(transform) }
        return nil
      }
      made[size] = transform
    }
    transforms = made
  }

  deinit { for transform in transforms.values { cmsDeleteTransform(transform) } }

  /// Whether all colours of a coarse grid stay where they are, to a rounding error.
  fileprivate var changesNothing: Bool {
    let steps = stride(from: 0, through: 255, by: 15).map { UInt8($0) }
    let colours = steps.flatMap { red in steps.flatMap { green in steps.flatMap { [red, green, $0] } } }
    var changed = colours
    cmsDoTransform(transforms[3], colours, &changed, UInt32(colours.count / 3))
    return zip(colours, changed).allSatisfy { abs(Int($0) - Int($1)) <= 1 }
  }

  /// Changes the colours in place.
  ///
  /// - Parameter picture: RGB24 or RGBA, of which alpha stays what it is.
  package func apply(to picture: FrameBuffer) throws(FFmpegError) {
    try picture.makeWritable()
    let (start, stride) = picture.plane(0)
    cmsDoTransformLineStride(
      transforms[picture.format == AV_PIX_FMT_RGBA ? 4 : 3], start, start, UInt32(picture.width),
      UInt32(picture.height),
      UInt32(stride), UInt32(stride), 0, 0)
  }
}
