import Foundation

/// Decoded pictures, as stock ffmpeg sees them.
public struct Pixels {
  public let width: Int
  public let height: Int
  /// Red, green, blue, in rows.
  public let bytes: [UInt8]

  /// Decodes a video or an image; one element a sample.
  public static func decode(_ file: String, width: Int, height: Int) throws -> [Pixels] {
    let raw = Array(
      try Tool.output(
        "ffmpeg",
        [
          "-v", "error", "-i", file, "-map", "0:v", "-vsync", "passthrough", "-sws_flags",
          "accurate_rnd+full_chroma_int",
          "-pix_fmt", "rgb24", "-f", "rawvideo", "-",
        ]))
    let size = width * height * 3
    guard raw.count % size == 0, !raw.isEmpty else {
      throw Tool.Failure("\(file): \(raw.count) bytes are no pictures of \(width)×\(height)")
    }
    return stride(from: 0, to: raw.count, by: size).map {
      Pixels(width: width, height: height, bytes: Array(raw[$0..<$0 + size]))
    }
  }

  public subscript(x: Int, y: Int) -> [UInt8] {
    let offset = (y * width + x) * 3
    return Array(bytes[offset..<offset + 3])
  }

  /// The number that a fixture's patches show, the lowest bit on the left.
  public var number: Int {
    (0..<8).reduce(0) { number, bit in
      let patch = self[width * (2 * bit + 1) / 16, height * 3 / 8]
      return patch[1] > 127 ? number | 1 << bit : number
    }
  }

  /// The mean CIEDE2000 difference to another picture of the same size.
  public func difference(to other: Pixels) -> Double {
    var sum = 0.0
    var cache: [UInt64: Double] = [:]
    for offset in stride(from: 0, to: bytes.count, by: 3) {
      var key: UInt64 = 0
      for index in 0..<3 {
        key = key << 16 | UInt64(bytes[offset + index]) << 8 | UInt64(other.bytes[offset + index])
      }
      if let known = cache[key] {
        sum += known
        continue
      }
      let value = ciede2000(Lab(bytes[offset..<offset + 3]), Lab(other.bytes[offset..<offset + 3]))
      cache[key] = value
      sum += value
    }
    return sum / Double(width * height)
  }
}

/// CIE L*a*b* of an sRGB colour, D65.
public struct Lab {
  let l: Double
  let a: Double
  let b: Double

  public init(l: Double, a: Double, b: Double) {
    self.l = l
    self.a = a
    self.b = b
  }

  public init(_ rgb: some Sequence<UInt8>) {
    let linear = rgb.map { value -> Double in
      let c = Double(value) / 255
      return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4)
    }
    func f(_ t: Double) -> Double { t > 216.0 / 24_389 ? cbrt(t) : (24_389.0 / 27 * t + 16) / 116 }
    let x = f((0.4124564 * linear[0] + 0.3575761 * linear[1] + 0.1804375 * linear[2]) / 0.95047)
    let y = f(0.2126729 * linear[0] + 0.7151522 * linear[1] + 0.0721750 * linear[2])
    let z = f((0.0193339 * linear[0] + 0.1191920 * linear[1] + 0.9503041 * linear[2]) / 1.08883)
    self.init(l: 116 * y - 16, a: 500 * (x - y), b: 200 * (y - z))
  }
}

/// The CIEDE2000 colour difference (Sharma, Wu, Dalal 2005).
public func ciede2000(_ one: Lab, _ two: Lab) -> Double {
  let radian = Double.pi / 180
  let meanC = (hypot(one.a, one.b) + hypot(two.a, two.b)) / 2
  let g = 0.5 * (1 - (pow(meanC, 7) / (pow(meanC, 7) + pow(25, 7))).squareRoot())
  let a1 = (1 + g) * one.a
  let a2 = (1 + g) * two.a
  let c1 = hypot(a1, one.b)
  let c2 = hypot(a2, two.b)
  func hue(_ a: Double, _ b: Double) -> Double {
    if a == 0 && b == 0 { return 0 }
    let angle = atan2(b, a) / radian
    return angle < 0 ? angle + 360 : angle
  }
  let h1 = hue(a1, one.b)
  let h2 = hue(a2, two.b)
  var dh = h2 - h1
  if c1 * c2 == 0 { dh = 0 } else if dh > 180 { dh -= 360 } else if dh < -180 { dh += 360 }
  let dL = two.l - one.l
  let dC = c2 - c1
  let dH = 2 * (c1 * c2).squareRoot() * sin(dh / 2 * radian)
  let l = (one.l + two.l) / 2
  let c = (c1 + c2) / 2
  var h = h1 + h2
  if c1 * c2 != 0 {
    if abs(h1 - h2) <= 180 { h /= 2 } else { h = h < 360 ? (h + 360) / 2 : (h - 360) / 2 }
  }
  let t =
    1 - 0.17 * cos((h - 30) * radian) + 0.24 * cos(2 * h * radian) + 0.32 * cos((3 * h + 6) * radian)
    - 0.20 * cos((4 * h - 63) * radian)
  let sL = 1 + 0.015 * pow(l - 50, 2) / (20 + pow(l - 50, 2)).squareRoot()
  let sC = 1 + 0.045 * c
  let sH = 1 + 0.015 * c * t
  let rT =
    -2 * (pow(c, 7) / (pow(c, 7) + pow(25, 7))).squareRoot() * sin(60 * exp(-pow((h - 275) / 25, 2)) * radian)
  let tL = dL / sL
  let tC = dC / sC
  let tH = dH / sH
  return (tL * tL + tC * tC + tH * tH + rT * tC * tH).squareRoot()
}
