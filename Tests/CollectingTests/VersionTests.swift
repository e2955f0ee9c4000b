import Foundation
import TestSupport
import Testing

@testable import Collecting
@testable import FileSystem
@testable import FrameBatches

/// A name that the recorder writes again and again: each version is a picture.
@Suite struct VersionTests {
  private static let startMs: Int64 = 1_767_859_512_000
  private let folder: CollectedFolder

  init() throws {
    folder = try CollectedFolder()
    folder.options.times = .modified
    try folder.start()
    try folder.collector?.step()
  }

  private func write(_ versions: ClosedRange<Int>, seen: Bool = true) throws {
    for version in versions {
      try folder.replace("snapshot.jpg", with: "v\(version)", capturedMs: Self.startMs + Int64(version) * 200)
      if seen { try folder.see("snapshot.jpg", moved: 1) }
    }
  }

  private func expectOnce(_ versions: [Int]) throws {
    let written = Dictionary(uniqueKeysWithValues: versions.map { (CollectedFolder.image("v\($0)"), 1) })
    #expect(try folder.contents() == written)
    let times = try folder.batches().flatMap(\.times)
    #expect(times == versions.map { Self.startMs + Int64($0) * 200 })
  }

  @Test func eachVersionIsAPictureWithTheTimeOfItsFile() throws {
    try write(0...30)
    #expect(folder.collector?.waiting == 31)
    try folder.pass(seconds: 70)
    try write(31...40)
    try folder.pass(seconds: 70)
    try expectOnce(Array(0...40))
    #expect(folder.lost.isEmpty && folder.left.isEmpty)
    // The recorder may replace it at any time.
    #expect(try names(in: folder.folder) == ["snapshot.jpg"])
    let home = try folder.spool.collectors + "/" + names(in: folder.spool.collectors)[0]
    #expect(try names(in: home + "/held").isEmpty && names(in: home + "/drafts").isEmpty)
  }

  /// Two displays are no one film: each could have a folder.
  @Test func namesThatAreWrittenInTurnAreToldOnce() throws {
    for version in 0..<6 {
      let name = "display-\(1 + version % 2).jpg"
      try folder.replace(name, with: "v\(version)", capturedMs: Self.startMs + Int64(version) * 200)
      try folder.see(name, moved: 1)
    }
    #expect(folder.inTurn == [["display-1.jpg", "display-2.jpg"]])
    try write(6...8)
    #expect(folder.inTurn.count == 1)
  }

  @Test func versionsOfOneNameAreOfOneSource() throws {
    try write(0...5)
    #expect(folder.inTurn.isEmpty)
  }

  @Test func versionsThatWereNotSeenAreCounted() throws {
    try write(0...2)
    try write(3...6, seen: false)
    try folder.see("snapshot.jpg", moved: 4)
    try write(7...7)
    try folder.pass(seconds: 70)
    try expectOnce([0, 1, 2, 6, 7])
    #expect(folder.lost == ["snapshot.jpg": 3] && folder.collector?.totals.lost == 3)
  }

  @Test func halfWrittenVersionIsNotTaken() throws {
    try write(0...1)
    try folder.add("snapshot.jpg", [0xFF, 0xD8, 0xFF, 0xE0, 1, 2])
    try folder.pass(seconds: 10)
    try write(2...2)
    try folder.pass(seconds: 70)
    try expectOnce([0, 1, 2])
  }

  @Test func killedCollectorLosesAndDoublesNoVersion() throws {
    folder.rules.everyMs = 100
    for round in 0..<20 {
      try write(round * 5...round * 5 + 4)
      // A kill after any step.
      if round % 3 != 2 { try folder.pass(seconds: round % 2 * 2) }
      try folder.start()
      try folder.collector?.step()
    }
    try folder.pass(seconds: 70)
    try expectOnce(Array(0..<100))
  }

  @Test func lineInTheJournalWithoutACopyIsForgotten() throws {
    let home = try folder.spool.collectors + "/" + names(in: folder.spool.collectors)[0]
    try write(0...1)
    // As after a kill between the line in the journal and the copy.
    #expect(unlink(home + "/held/held-2") == 0)
    try folder.start()
    try write(2...3)
    try folder.start()
    try folder.pass(seconds: 70)
    try expectOnce([0, 2, 3])
  }

  @Test func versionsAreSeenByScansAlone() throws {
    for version in 0..<8 {
      try write(version...version, seen: false)
      // Two scans see a new name. From the second version on, its name is looked at more often.
      for _ in 0..<(version == 0 ? 20 : 12) {
        folder.nowMs += 250
        try folder.collector?.step()
      }
    }
    try folder.pass(seconds: 70)
    try expectOnce(Array(0..<8))
  }

  @Test func pictureThatIsWrittenOnceIsRemoved() throws {
    for number in 0..<3 {
      try folder.replace("\(number).jpg", with: "v\(number)", capturedMs: Self.startMs + Int64(number) * 200)
      try folder.see("\(number).jpg", moved: 1)
    }
    try folder.pass(seconds: 70)
    try expectOnce([0, 1, 2])
    #expect(try names(in: folder.folder).isEmpty)
  }

  /// Copies and some file systems keep whole seconds: all but one picture of a second were lost.
  @Test func picturesOfOneSecondAreSpreadInTheOrderOfTheirNames() throws {
    for number in 0..<12 {
      let name = "p\(number + 1).jpg"
      try folder.replace(name, with: "v\(number)", capturedMs: Self.startMs + Int64(number / 3) * 1_000)
      try folder.see(name, moved: 1)
    }
    try folder.pass(seconds: 70)
    #expect(try folder.contents().count == 12)
    let offsets = try folder.batches().flatMap(\.times).map { $0 - Self.startMs }
    let seconds: [Int64] = [0, 1_000, 2_000, 3_000]
    #expect(offsets == seconds.flatMap { [$0, $0 + 333, $0 + 666] })
    #expect(try names(in: folder.folder).isEmpty)
  }

  @Test func namedTimesAreOnePictureEach() throws {
    let folder = try CollectedFolder()
    try folder.start()
    for version in 0..<3 {
      try folder.replace("\(Self.startMs).jpg", with: "v\(version)", capturedMs: Self.startMs)
      try folder.see("\(Self.startMs).jpg", moved: 1)
    }
    try folder.pass(seconds: 70)
    #expect(try folder.contents() == [CollectedFolder.image("v2"): 1])
    #expect(try names(in: folder.folder).isEmpty && folder.lost.isEmpty)
  }
}
