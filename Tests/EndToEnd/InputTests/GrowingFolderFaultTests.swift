import Foundation
import TestSupport
import Testing

/// A folder that has grown, and is not as simple as that: pauses, cuts, dead workers, ends.
@Suite struct GrowingFolderFaultTests: GrowingFolderSuite {
  let scratch: ScratchDirectory
  let folder: NumberedFolder

  init() throws {
    scratch = try ScratchDirectory()
    folder = try NumberedFolder("yard", in: scratch)
  }

  /// They were refused.
  @Test func picturesBehindALongPauseArePublished() throws {
    try folder.add(at: [0, 1_000, 2_000])
    try #require(try encode().status == 0)
    let monday: Int64 = 3 * 86_400_000
    try folder.add(at: [monday, monday + 1_000], from: 3)
    let result = try encode()
    #expect(try result.status == 0 && captured() == [0, 1_000, 2_000, monday, monday + 1_000], "\(result.errors)")
  }

  @Test func unreadableNewFilesAreReported() throws {
    try folder.add(at: [0, 1_000, 2_000])
    try #require(try encode().status == 0)
    try folder.add("shot 3.png", 3)
    #expect(try encode().jsonLines(as: EncodedLine.self).flatMap(\.refused).map(\.source) == ["shot 3.png"])
  }

  /// The first picture behind a cut came too early. Those behind it are published.
  @Test func earlyPictureBehindACutIsRefusedAlone() throws {
    try folder.add(at: [0, 1_000, 2_000])
    try #require(try encode(limit: 3).status == 0)
    try folder.add(at: [2_300], from: 3)
    let alone = try encode(limit: 3)
    #expect(
      alone.status == 65 && alone.errors.contains("\(NumberedFolder.startMs + 2_300).png was captured at"),
      "\(alone.errors)")
    try folder.add(at: [3_000, 4_000], from: 4)
    let result = try encode(limit: 3)
    #expect(result.status == 0, "\(result.errors)")
    let refused = try result.jsonLines(as: EncodedLine.self).flatMap(\.refused)
    #expect(refused.map(\.source) == ["\(NumberedFolder.startMs + 2_300).png"])
    #expect(try captured() == [0, 1_000, 2_000, 3_000, 4_000])
    #expect(try encode(limit: 3).jsonLines(as: EncodedLine.self).allSatisfy(\.duplicate))
  }

  /// The last picture was held for a long interval, and the new ones end before that.
  @Test func picturesWithinTheLastHoldAreRefusedUntilThereAreLaterOnes() throws {
    let onChange = ["--capture", "onChange"]
    try folder.add(at: [0, 9_000])
    try #require(try encode(onChange).status == 0)
    try folder.add(at: [14_000, 14_500, 15_000, 15_500], from: 2)
    let early = try encode(onChange)
    #expect(early.status == 0 && early.errors.contains("but the picture before it was published"), "\(early.errors)")
    #expect(try captured() == [0, 9_000])
    try folder.add(at: [19_000], from: 6)
    let result = try encode(onChange)
    #expect(try result.status == 0 && captured().last == 19_000, "\(result.errors)")
  }

  /// A worker died while it published, and the folder has grown since.
  @Test(arguments: [1, 2, 3]) func folderOfADeadWorkerGrows(segments: Int) throws {
    try folder.add(at: (0..<20).map { $0 * 1_000 })
    try #require(try encode(to: "whole", limit: 100).status == 0)
    let dead = try scratch.directory("out/yard")
    for manifest in try session("whole").manifests.prefix(segments) {
      for file in [manifest.file, manifest.file.replacingOccurrences(of: ".mp4", with: ".json")] {
        try FileManager.default.copyItem(atPath: scratch.path("whole/yard/" + file), toPath: dead + "/" + file)
      }
    }
    try folder.add(at: [20_000], from: 20)
    let result = try encode(limit: 100)
    #expect(result.status == 0, "\(result.errors)")
    try #require(try encode(to: "fresh", limit: 100).status == 0)
    func files(_ output: String) throws -> [String: Data] {
      try snapshot(of: session(output).path).filter { $0.key.hasPrefix("segment-") }.mapValues(\.bytes)
    }
    #expect(try files("out") == files("fresh"))
    #expect(try EncoderWorker.run("verify", scratch.path("out/yard")).status == 0)
  }

  @Test func publishedFolderEndsItsSessionLater() throws {
    try folder.add(at: [0, 1_000])
    try #require(try encode().status == 0)
    #expect(try !session().index.complete)
    #expect(try encode(["--final"]).jsonLines(as: EncodedLine.self).map(\.duplicate) == [true])
    #expect(try session().index.complete)
    try folder.add(at: [2_000], from: 2)
    #expect(try encode().status == 0 && session().index.complete && captured() == [0, 1_000, 2_000])
    #expect(try EncoderWorker.run("verify", scratch.path("out/yard")).status == 0)
  }

  /// A session is complete only with its middle.
  @Test func lastPartWaitsForTheOthers() throws {
    try folder.add(at: [0, 1_000, 2_000, 6_000, 7_000])
    for offset in [3_000, 4_000, 5_000] {
      try scratch.file("yard/\(NumberedFolder.startMs + Int64(offset)).png", Array("no picture".utf8))
    }
    let result = try encode(["--final", "--jobs", "2"], limit: 3)
    #expect(result.status == 65, "\(result.errors)")
    #expect(
      result.errors.contains("1 published, 1 failed, 1 not begun; the last one waits for the others"),
      "\(result.errors)")
    #expect(try !session().index.complete && captured() == [0, 1_000, 2_000])
  }
}
