import Testing

@testable import FileSystem

@Suite struct ProfileTests {
  private func columns(_ profile: Profile) -> [[String]] { profile.rows }

  /// Percentiles are within three percent, for any range of durations.
  @Test func percentilesMatchTheDurations() throws {
    let profile = Profile()
    for number in 1...1_000 {
      profile.add(.read, Profile.Span(cpuNs: 10_000, wallNs: Int64(number) * 1_000_000))
    }
    let row = try #require(columns(profile).first { $0[0] == "read" })
    #expect(row[1...4] == ["frame", "1000", "10.0", "500500.0"])
    let spread = try row[5...].map { try #require(Double($0)) }
    for (found, wanted) in zip(spread, [1, 500.5, 500, 750, 950, 1_000]) {
      #expect(abs(found - wanted) <= 0.035 * wanted, "\(spread)")
    }
    #expect(spread[0] == 1 && spread[1] == 500.5 && spread[5] == 1_000)
  }

  @Test func sumsOfABatchAlsoCountForTheWorker() {
    let worker = Profile()
    for wallNs in [2_000, 3_000] as [Int64] {
      let batch = Profile(sumsFor: worker)
      batch.add(.encode, Profile.Span(cpuNs: 1, wallNs: wallNs))
      #expect(batch.wallNs(of: [.encode, .mux]) == wallNs)
    }
    #expect(worker.wallNs(of: [.encode]) == 5_000)
    let taken = worker.takeMeasured()
    #expect(taken.map(\.stage) == [.encode] && taken.first?.count == 2)
    #expect(worker.measured.isEmpty && worker.wallNs(of: [.encode]) == 0)
  }

  @Test func singleDurationIsEachPercentile() throws {
    let profile = Profile()
    profile.add(.publish, Profile.Span(cpuNs: 0, wallNs: 1_234_567))
    profile.add(.open, Profile.Span(cpuNs: 0, wallNs: 0))
    #expect(columns(profile).map(\.first) == ["stage", "open", "publish"])
    #expect(columns(profile)[2][5...] == ["1.235", "1.235", "1.235", "1.235", "1.235", "1.235"])
    #expect(columns(profile)[1][5...] == ["0.000", "0.000", "0.000", "0.000", "0.000", "0.000"])
  }
}
