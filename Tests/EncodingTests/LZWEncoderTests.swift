import TestSupport
import Testing

@testable import Encoding

/// A decoder of the compressed data of a GIF (GIF89a, appendix F), written from the specification.
private func symbols(of data: [UInt8]) throws -> [UInt8] {
  let bits = Int(data[0])
  var bytes: [UInt8] = []
  var at = 1
  while data[at] > 0 {
    bytes += data[at + 1...at + Int(data[at])]
    at += 1 + Int(data[at])
  }
  try #require(at == data.count - 1, "bytes behind the last block")
  let (clear, end) = (1 << bits, 1 << bits + 1)
  var (position, width) = (0, bits + 1)
  func code() throws -> Int {
    try #require(position + width <= 8 * bytes.count, "the data end without the end code")
    defer { position += width }
    return (0..<width).reduce(0) { $0 | Int(bytes[(position + $1) / 8] >> UInt8((position + $1) % 8) & 1) << $1 }
  }
  var table: [[UInt8]] = []
  var previous: [UInt8]?
  var result: [UInt8] = []
  #expect(try code() == clear)
  table = (0..<end + 1).map { $0 < clear ? [UInt8($0)] : [] }
  while true {
    let next = try code()
    if next == end { break }
    if next == clear {
      (table, previous, width) = ((0..<end + 1).map { $0 < clear ? [UInt8($0)] : [] }, nil, bits + 1)
      continue
    }
    var string: [UInt8]
    if next < table.count {
      string = table[next]
    } else {
      try #require(next == table.count && previous != nil, "a code without a string")
      string = previous! + [previous![0]]
    }
    if let previous, table.count < 4_096 { table.append(previous + [string[0]]) }
    if table.count == 1 << width, width < 12 { width += 1 }
    result += string
    previous = string
  }
  #expect(8 * bytes.count - position < 8, "bytes behind the end code")
  return result
}

@Suite struct LZWEncoderTests {
  @Test(arguments: 2...8) func decoderGetsTheSymbolsBack(bits: Int) throws {
    var encoder = LZWEncoder()
    var random = Random(seed: bits)
    // From one symbol on, up to many dictionaries; repetitions and noise.
    for count in [1, 2, 3, 254, 255, 256, 257, 4_000, 100_000] {
      for colours in [1, 2, 1 << bits] {
        let noise = (0..<count).map { _ in UInt8(random.int(0...Int64(colours - 1))) }
        #expect(try symbols(of: encoder.encode(noise, bits: bits)) == noise, "\(count) of \(colours)")
      }
      let same = [UInt8](repeating: UInt8(1 << bits - 1), count: count)
      #expect(try symbols(of: encoder.encode(same, bits: bits)) == same, "\(count) equal ones")
    }
  }

  /// The width of codes grows, and the dictionary is cleared, at each possible place of the end.
  @Test func endIsFoundBehindEachNumberOfCodes() throws {
    var encoder = LZWEncoder()
    var random = Random(seed: 9)
    let noise = (0..<9_000).map { _ in UInt8(random.int(0...255)) }
    for count in [250...260, 508...516, 1_020...1_028, 2_040...2_052, 3_830...3_850, 4_090...4_100].joined() {
      #expect(try symbols(of: encoder.encode(Array(noise[..<count]), bits: 8)) == Array(noise[..<count]), "\(count)")
    }
  }

  @Test func longRunsBecomeFewBytes() {
    var encoder = LZWEncoder()
    #expect(encoder.encode(Array(repeating: 7, count: 100_000), bits: 8).count < 700)
  }
}
