// A colour space as a PNG states it in numbers: how values become light, and the chromaticities of that light. The numbers come
// from untrusted files.

import Glibc

/// A colour space of red, green and blue, without an ICC profile.
struct ColourSpace: Equatable {
  /// How a value from 0 to 1 becomes light.
  enum Transfer: Equatable {
    case sRGB
    case power(Double)
    /// Perceptual quantisation (SMPTE ST 2084).
    case pq
    /// Hybrid log-gamma (ITU-R BT.2100).
    case hlg
  }

  let transfer: Transfer
  let primaries: Chromaticities
  /// Whether black is 0 and white is the highest value, not 16 and 235 of 255.
  let isFullRange: Bool
  /// Converts light to linear sRGB, row by row.
  let matrix: [Double]

  /// The luminance in cd/m² that becomes the white of sRGB (ITU-R BT.2408, 2.2).
  private static let referenceWhite = 203.0

  /// Returns nil for chromaticities that no display can have.
  init?(_ transfer: Transfer, _ primaries: Chromaticities, isFullRange: Bool) {
    guard let matrix = primaries.matrixToSRGB else { return nil }
    (self.transfer, self.primaries, self.isFullRange) = (transfer, primaries, isFullRange)
    // The display of HLG's reference has 1000 cd/m².
    self.matrix = transfer == .hlg ? matrix.map { $0 * 1_000 / Self.referenceWhite } : matrix
  }

  /// Whether its pictures are shown as they are.
  var isStandard: Bool { transfer == .sRGB && isFullRange && primaries.isNear(.sRGB) }

  /// The note for the manifest; nil for a space without loss.
  var note: String? {
    let name: String
    switch transfer {
    case .pq: name = "PQ"
    case .hlg: name = "HLG"
    case .sRGB, .power: return nil
    }
    return "shown without its high dynamic range (\(name)): light above \(Int(Self.referenceWhite)) cd/m² is white"
  }

  /// Returns the light of a value from 0 to 1; white is 1. Of HLG, the light of the scene.
  func light(of value: Double) -> Double {
    let value = isFullRange ? value : min(max((value * 255 - 16) / 219, 0), 1)
    switch transfer {
    case .sRGB: return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    case .power(let exponent): return pow(value, exponent)
    case .pq:
      let root = pow(value, 32 / 2_523)
      let ratio = max(root - 3_424 / 4_096, 0) / (2_413 / 128 - 2_392 / 128 * root)
      return pow(ratio, 16_384 / 2_610) * 10_000 / Self.referenceWhite
    case .hlg:
      let (a, b, c) = (0.17883277, 0.28466892, 0.55991073)
      return value <= 0.5 ? value * value / 3 : (exp((value - c) / a) + b) / 12
    }
  }

  /// The value of sRGB, 0 to 255, by light in 65 535ths.
  static let sRGBCodes: [UInt8] = (0...65_535).map {
    let light = Double($0) / 65_535
    let value = light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
    return UInt8(min(max(value * 255, 0), 255).rounded())
  }
}

/// The chromaticities x and y of a display.
struct Chromaticities: Equatable {
  let red, green, blue, white: SIMD2<Double>

  private static let d65 = SIMD2(0.3127, 0.3290)
  static let sRGB = Chromaticities([0.64, 0.33], [0.30, 0.60], [0.15, 0.06])

  private init(
    _ red: SIMD2<Double>, _ green: SIMD2<Double>, _ blue: SIMD2<Double>, white: SIMD2<Double> = Chromaticities.d65
  ) {
    (self.red, self.green, self.blue, self.white) = (red, green, blue, white)
  }

  /// - Parameter code: a ColourPrimaries value of ITU-T H.273.
  init?(code: UInt8) {
    switch code {
    case 1: self = .sRGB
    case 5: self.init([0.64, 0.33], [0.29, 0.60], [0.15, 0.06])
    case 6, 7: self.init([0.630, 0.340], [0.310, 0.595], [0.155, 0.070])
    case 9: self.init([0.708, 0.292], [0.170, 0.797], [0.131, 0.046])
    case 11: self.init([0.680, 0.320], [0.265, 0.690], [0.150, 0.060], white: [0.314, 0.351])
    case 12: self.init([0.680, 0.320], [0.265, 0.690], [0.150, 0.060])
    case 22: self.init([0.630, 0.340], [0.295, 0.605], [0.155, 0.077])
    default: return nil
    }
  }

  /// - Parameter cHRM: eight numbers in 100 000ths, white first (PNG, 11.3.2.1).
  init?(cHRM body: ArraySlice<UInt8>) {
    guard body.count == 32 else { return nil }
    let points = (0..<4).map { index -> SIMD2<Double> in
      let start = body.startIndex + 8 * index
      let (x, y) = (body[start..<start + 4].bigEndian, body[start + 4..<start + 8].bigEndian)
      return SIMD2(Double(x) / 100_000, Double(y) / 100_000)
    }
    self.init(points[1], points[2], points[3], white: points[0])
  }

  /// Whether no difference could be seen.
  func isNear(_ other: Chromaticities) -> Bool {
    let distances = [red - other.red, green - other.green, blue - other.blue, white - other.white]
    return distances.allSatisfy { $0.max() <= 0.005 && $0.min() >= -0.005 }
  }

  /// The conversion of light to linear sRGB, row by row. White becomes white (Bradford). nil unless white is a mixture of all three
  /// colours, and the numbers are of a reasonable size.
  var matrixToSRGB: [Double]? {
    guard let own = toXYZ, let back = Self.sRGB.toXYZ?.inverse else { return nil }
    let bradford = Matrix3([0.8951, 0.2664, -0.1614, -0.7502, 1.7135, 0.0367, 0.0389, -0.0685, 1.0296])
    guard let undo = bradford.inverse else { return nil }
    let (from, to) = (bradford * xyz(white), bradford * xyz(Self.d65))
    let adaptation = undo * Matrix3(diagonal: to / from) * bradford
    let result = (back * adaptation * own).elements
    // A NaN is not in the range.
    return result.allSatisfy { (-100...100).contains($0) } ? result : nil
  }

  private var toXYZ: Matrix3? {
    for point in [red, green, blue, white] where point.min() < 0 || point.sum() > 1 { return nil }
    guard white.y >= 0.01 else { return nil }
    let columns: [SIMD3<Double>] = [red, green, blue].map { SIMD3($0.x, $0.y, 1 - $0.sum()) }
    let colours = Matrix3(columns: columns)
    guard let scale = colours.inverse.map({ $0 * xyz(white) }), scale.min() > 0 else { return nil }
    return colours * Matrix3(diagonal: scale)
  }

  private func xyz(_ point: SIMD2<Double>) -> SIMD3<Double> {
    SIMD3(point.x / point.y, 1, (1 - point.sum()) / point.y)
  }
}

/// A matrix of three rows and columns.
private struct Matrix3 {
  /// Row by row.
  let elements: [Double]

  init(_ elements: [Double]) { self.elements = elements }
  init(columns: [SIMD3<Double>]) { elements = (0..<3).flatMap { row in columns.map { $0[row] } } }
  init(diagonal: SIMD3<Double>) { elements = [diagonal.x, 0, 0, 0, diagonal.y, 0, 0, 0, diagonal.z] }

  private func row(_ index: Int) -> SIMD3<Double> {
    SIMD3(elements[3 * index], elements[3 * index + 1], elements[3 * index + 2])
  }

  static func * (left: Matrix3, right: SIMD3<Double>) -> SIMD3<Double> {
    SIMD3((left.row(0) * right).sum(), (left.row(1) * right).sum(), (left.row(2) * right).sum())
  }

  static func * (left: Matrix3, right: Matrix3) -> Matrix3 {
    let e = right.elements
    let columns: [SIMD3<Double>] = (0..<3).map { left * SIMD3(e[$0], e[3 + $0], e[6 + $0]) }
    return Matrix3(columns: columns)
  }

  /// nil for a matrix that nearly loses a dimension.
  var inverse: Matrix3? {
    let m = elements
    func minor(_ a: Int, _ b: Int, _ c: Int, _ d: Int) -> Double { m[a] * m[b] - m[c] * m[d] }
    let cofactors: [Double] = [
      minor(4, 8, 5, 7), minor(2, 7, 1, 8), minor(1, 5, 2, 4), minor(5, 6, 3, 8), minor(0, 8, 2, 6),
      minor(2, 3, 0, 5), minor(3, 7, 4, 6), minor(1, 6, 0, 7), minor(0, 4, 1, 3),
    ]
    let determinant = (row(0) * SIMD3(cofactors[0], cofactors[3], cofactors[6])).sum()
    guard abs(determinant) > 1e-6 else { return nil }
    return Matrix3(cofactors.map { $0 / determinant })
  }
}
