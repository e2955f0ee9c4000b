import TestSupport
import Testing

@testable import ISOMedia

@Suite struct NALUnitTests {
  private func split(_ bytes: [UInt8]) -> [[UInt8]] {
    bytes.withUnsafeBufferPointer { NALUnit.split($0).map { Array($0.bytes) } }
  }

  @Test func startCodesSeparateUnits() {
    #expect(
      split([0, 0, 1, 0x67, 5, 0, 0, 0, 1, 0x68, 6, 0, 0, 1, 0x65, 7, 0, 0, 3]) == [
        [0x67, 5], [0x68, 6], [0x65, 7, 0, 0, 3],
      ])
    #expect(split([0, 0, 0, 1, 0x65]) == [[0x65]])
    #expect(split([]).isEmpty)
    #expect(split([1, 2, 3]).isEmpty)
  }

  @Test func onlyPicturesAreKept() {
    let stream: [UInt8] = [0, 0, 1, 0x06, 9, 9, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x65, 0xAA, 0xBB]
    let kept = stream.withUnsafeBufferPointer { NALUnit.lengthPrefixed(NALUnit.split($0)) }
    #expect(kept == [0, 0, 0, 3, 0x65, 0xAA, 0xBB])
  }
}
