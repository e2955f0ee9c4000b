import Testing

@testable import encoder_worker

@Suite struct TableTests {
  @Test(
    arguments: [
      (0, "0 ms"), (840, "840 ms"), (999, "999 ms"), (1_000, "1.0 s"), (5_049, "5.0 s"), (59_999, "59.9 s"),
      (60_000, "1 min"), (725_000, "12 min 5 s"), (3_600_000, "1 h"), (8_400_000, "2 h 20 min"), (86_400_000, "1 d"),
      (273_600_000, "3 d 4 h"), (-1, "0 ms"),
    ] as [(Int64, String)])
  func durationHasAtMostTwoUnits(ms: Int64, text: String) { #expect(duration(ms: ms) == text) }

  @Test(arguments: [
    (0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (9_999, "9.9 kB"), (63_400_000, "63 MB"), (3_400_000_000, "3.4 GB"),
  ])
  func sizeHasTwoDigitsOrMore(bytes: Int, text: String) { #expect(size(bytes) == text) }
}
