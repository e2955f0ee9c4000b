import Testing

@testable import Encoding
@testable import FrameBatches
@testable import ISOMedia

/// A repeat is what the standard says, and a repeat with one wrong element is not.
@Suite struct SkippedSliceTests {
  /// The wrong part of a repeat: a syntax element, or a byte behind the data.
  private enum Element: CaseIterable {
    case forbiddenBit, reference, kind, firstMacroblock, sliceType, parameterSet, number, referenceCount, referenceOrder
    case marking, table, quantiser, deblocking, alignment, skip, earlyEnd, lateEnd, stop, trailingByte
  }

  private static func sets(_ width: Int, _ height: Int) throws -> ParameterSets {
    try VideoEncoder(width: width, height: height, settings: EncoderSettings(.balanced)).parameterSets
  }

  /// Returns a NAL unit without its length.
  private static func picture(_ sets: ParameterSets, _ number: Int) throws -> [UInt8] {
    Array(try SkipSliceWriter(after: sets).picture(number).dropFirst(4))
  }

  @Test(arguments: SkippedPictureTests.sizes) func everyRepeatIsRead(size: PixelSize) throws {
    let sets = try Self.sets(size.width + size.width % 2, size.height + size.height % 2)
    let reader = try SkippedSliceReader(sets)
    for number in 1...40 { try reader.read(Self.picture(sets, number), number: number) }
  }

  /// Returns the header of a repeat, with its alignment, as a payload.
  private func header(_ number: Int, _ reader: SkippedSliceReader, wrong: Element?) -> [UInt8] {
    var slice = BitWriter()
    slice.put(wrong == .forbiddenBit)
    slice.put(wrong == .reference ? 0 : 2, bits: 2)
    slice.put(wrong == .kind ? 5 : 1, bits: 5)
    slice.put(unsigned: wrong == .firstMacroblock ? 1 : 0)
    slice.put(unsigned: wrong == .sliceType ? 7 : 5)
    slice.put(unsigned: wrong == .parameterSet ? 1 : 0)
    slice.put(number + (wrong == .number ? 1 : 0), bits: reader.frameNumberBits)
    slice.put(wrong == .referenceCount)
    if wrong == .referenceCount { slice.put(unsigned: 1) }
    slice.put(wrong == .referenceOrder)
    if wrong == .referenceOrder { for value in [0, 0, 3] { slice.put(unsigned: value) } }
    slice.put(wrong == .marking)
    if wrong == .marking { slice.put(unsigned: 0) }
    slice.put(unsigned: wrong == .table ? 1 : 0)
    slice.put(signed: 51 - reader.quantiser - (wrong == .quantiser ? 1 : 0))
    slice.put(unsigned: wrong == .deblocking ? 2 : 1)
    while !slice.isAligned { slice.put(wrong != .alignment) }
    return NALUnit.payload(of: slice.unit)
  }

  @Test func eachWrongElementIsNoticed() throws {
    let sets = try Self.sets(180, 320)
    let reader = try SkippedSliceReader(sets)
    let right = try Self.picture(sets, 3)
    let length = header(3, reader, wrong: nil).count
    func unit(_ wrong: Element?) throws -> [UInt8] {
      var data = Array(NALUnit.payload(of: right).dropFirst(length))
      switch wrong {
      case .skip: data[0] ^= 0x80
      case .earlyEnd: data = Array(NALUnit.payload(of: try Self.picture(Self.sets(180, 304), 3)).dropFirst(length))
      case .lateEnd: data = Array(NALUnit.payload(of: try Self.picture(Self.sets(180, 336), 3)).dropFirst(length))
      case .stop: data[data.count - 1] &= data[data.count - 1] - 1
      case .trailingByte: data.append(0)
      default: break
      }
      return NALUnit.unit(of: header(3, reader, wrong: wrong) + data)
    }
    #expect(try unit(nil) == right)
    try reader.read(right, number: 3)
    for wrong in Element.allCases {
      let changed = try unit(wrong)
      #expect(changed != right)
      #expect(throws: SkippedSliceReader.Fault.self, "\(wrong)") { try reader.read(changed, number: 3) }
    }
  }
}
