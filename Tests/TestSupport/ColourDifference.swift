import Foundation

/// The difference between two pictures: CIEDE2000 of their pixels. A value of about 1 is just visible.
public struct ColourDifference {
  public let mean: Double
  public let max: Double

  /// Compares two pictures of the same size.
  public init(_ one: Pixels, _ two: Pixels) {
    precondition((one.width, one.height) == (two.width, two.height))
    var sum = 0.0
    var max = 0.0
    // Screenshots have few colours, so most colour pairs repeat.
    var known: [Int: Double] = [:]
    var last = (pair: 0, value: 0.0)
    one.bytes.withUnsafeBufferPointer { one in
      two.bytes.withUnsafeBufferPointer { two in
        for at in stride(from: 0, to: one.count, by: 3) {
          let first = Int(one[at]) << 16 | Int(one[at + 1]) << 8 | Int(one[at + 2])
          let second = Int(two[at]) << 16 | Int(two[at + 1]) << 8 | Int(two[at + 2])
          if first == second { continue }
          let pair = first << 24 | second
          if pair != last.pair {
            let value = known[pair] ?? ciede2000(Lab(one[at..<at + 3]), Lab(two[at..<at + 3]))
            known[pair] = value
            last = (pair, value)
          }
          sum += last.value
          max = Swift.max(max, last.value)
        }
      }
    }
    mean = sum / Double(one.width * one.height)
    self.max = max
  }
}

/// CIE L*a*b* of an sRGB colour, D65.
public struct Lab: Sendable {
  let l: Double
  let a: Double
  let b: Double

  public init(l: Double, a: Double, b: Double) {
    self.l = l
    self.a = a
    self.b = b
  }

  private static let linear: [Double] = (0...255).map { value in
    let c = Double(value) / 255
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4)
  }

  /// - Parameter rgb: red, green, blue.
  public init(_ rgb: some Sequence<UInt8>) {
    let linear = rgb.map { Self.linear[Int($0)] }
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
