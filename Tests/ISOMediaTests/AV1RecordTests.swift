import Testing

@testable import ISOMedia

@Suite struct AV1RecordTests {
  @Test(
    arguments: [
      ([0x81, 0x00, 0x0C, 0], "av01.0.00M.08"), ([0x81, 0x08, 0x0C, 0, 0x0A, 1, 0], "av01.0.08M.08"),
      ([0x81, 0x2D, 0x80, 0], "av01.1.13H.08"), ([0x81, 0x0A, 0x40, 0], "av01.0.10M.10"),
      ([0x81, 0x4A, 0x60, 0], "av01.2.10M.12"), ([0x81, 0, 0], nil), ([], nil), ([1, 0x64, 0, 0x1E, 0xFF], nil),
    ] as [([UInt8], String?)])
  func recordTellsTheCodec(record: [UInt8], codec: String?) {
    #expect(AV1Record(record)?.codec == codec)
    if codec != nil { #expect(ParameterSets(configuration: record) == nil) }
  }
}
