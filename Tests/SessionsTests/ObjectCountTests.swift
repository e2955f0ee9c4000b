import FrameBatches
import TestSupport
import Testing

@testable import FileSystem
@testable import Sessions

/// Numbers of a store for `status`: from a bounded number of lists.
@Suite struct ObjectCountTests {
  private let objects = MemoryObjects()
  private var sessions: StoredSessions { StoredSessions(objects, name: "s3://test/") }

  private static let hourS = 3_600

  private func put(_ key: String, bytes: Int = 1, ageS: Int = 0) {
    objects[key] = Array(repeating: 1, count: bytes)
    objects.age(key, seconds: ageS)
  }

  @Test func objectsAreCountedWithTheAgeOfTheOldest() throws {
    put("ending/a", ageS: 5)
    put("ending/b", ageS: 90)
    put("ending/not a session", ageS: 1_000)
    put("endings/c", ageS: 1_000)
    let ending = try sessions.count(.ending, lists: 20)
    #expect(ending.count == 2 && ending.oldestS == 90 && !ending.isPartial)
    let open = try sessions.count(.open, lists: 20)
    #expect(open.count == 0 && open.oldestS == nil && !open.isPartial)
  }

  /// The store lists three objects at once.
  @Test func listsAreBoundedAndMoreObjectsAreSaidToBeThere() throws {
    for number in 0..<10 { put("quarantine/\(number)") }
    let some = try sessions.count(below: "quarantine/", lists: 2) { _ in true }
    #expect(some.count == 6 && some.isPartial)
    let all = try sessions.count(below: "quarantine/", lists: 5) { _ in true }
    #expect(all.count == 10 && !all.isPartial)
  }

  @Test func bytesOfTheLastDayAreThoseOfSessionsThatHaveChanged() throws {
    put("index/new/head.json", ageS: 2 * Self.hourS)
    put("index/new/0001767859512-0123456789abcdef.json", ageS: 30 * Self.hourS)
    put("output/new/segment-1.mp4", bytes: 1_000, ageS: 30 * Self.hourS)
    put("output/new/segment-2.mp4", bytes: 200, ageS: 2 * Self.hourS)
    put("output/new/hls/fragment.m4s", bytes: 34, ageS: 2 * Self.hourS)
    put("index/old/head.json", ageS: 25 * Self.hourS)
    put("output/old/segment-1.mp4", bytes: 1_000_000, ageS: 25 * Self.hourS)
    let growth = try OutputGrowth(of: sessions)
    #expect(growth == OutputGrowth(bytesADay: 234, objectsADay: 2, isEstimate: false))
  }

  @Test func youngStoreIsProjectedAndAVeryYoungOneSaysNothing() throws {
    put("index/new/head.json", ageS: 12 * Self.hourS)
    put("output/new/segment-1.mp4", bytes: 100, ageS: 12 * Self.hourS)
    #expect(try OutputGrowth(of: sessions).bytesADay == 200)
    put("output/new/segment-1.mp4", bytes: 100, ageS: 60)
    #expect(try OutputGrowth(of: sessions).bytesADay == nil)
  }

  /// Equal sessions: whichever are looked at, the estimate is the truth.
  @Test func someSessionsStandForAllAndAreSaidToDoSo() throws {
    for number in 0..<20 {
      put("index/s\(number)/head.json", ageS: Self.hourS)
      put("output/s\(number)/a", bytes: 50, ageS: Self.hourS)
    }
    put("index/old/head.json", ageS: 40 * Self.hourS)
    var lists = 0
    let growth = try OutputGrowth(of: sessions, lists: 20) { lists += 1 }
    #expect(growth == OutputGrowth(bytesADay: 1_000, objectsADay: 20, isEstimate: true))
    #expect(lists <= 20)
    // Three keys at once: the index alone needs eight lists.
    let nothing = OutputGrowth(bytesADay: nil, objectsADay: nil, isEstimate: false)
    #expect(try OutputGrowth(of: sessions, lists: 10) == nothing)
  }

  /// A store that lists objects of any size without an end, and says of none how old it is.
  private struct Endless: ObjectClient {
    let ageS: Int?

    func get(_ key: String, limit: Int) -> StoredObject? { nil }
    func download(_ key: String, to path: String, limit: Int) -> ObjectTag? { nil }
    func head(_ key: String) -> ObjectInfo? { nil }
    func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) -> ObjectTag? { nil }
    func copy(_ key: String, _ tag: ObjectTag, to target: String) -> Bool { false }
    func delete(_ key: String, _ tag: ObjectTag?) {}

    func list(_ prefix: String, after key: String?) -> [ObjectInfo] {
      // Each key lies behind all before it.
      let head = "/head.json"
      let next =
        prefix.hasPrefix("index/")
        ? String((key ?? prefix + head).dropLast(head.count)) + "z" + head : (key ?? prefix) + "z"
      return [ObjectInfo(key: next, size: .max, tag: ObjectTag("x"), ageS: ageS)]
    }
  }

  @Test(arguments: [nil, 0, 1 << 50]) func endlessStoreIsBounded(ageS: Int?) throws {
    let sessions = StoredSessions(Endless(ageS: ageS), name: "s3://test/")
    let count = try sessions.count(below: "quarantine/", lists: 20) { _ in true }
    #expect(count.count == 20 && count.isPartial && count.oldestS == ageS)
    var lists = 0
    #expect(try OutputGrowth(of: sessions) { lists += 1 }.bytesADay == nil)
    #expect(lists <= 250)
  }

  @Test func sumsOfAnySizesDoNotOverflow() {
    var seen = OutputGrowth.Seen(atMs: 1_767_859_512_340)
    for _ in 0..<3 { seen.add(.max, cameMs: 1_767_859_512_340 - 7_200_000) }
    #expect(seen.bytesADay(share: 0.001) == 1 << 62)
  }
}
