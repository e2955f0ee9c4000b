import Foundation
import TestSupport
import Testing

/// Zip archives, encoded by the program with its sandbox.
@Suite struct ZipArchiveTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private let archive = Fixture("formats/zip/deflated@1.zip").path

  private func instants(_ output: String, _ session: String) throws -> [Int64] {
    try PublishedSession(scratch.path(output + "/" + session)).manifests.flatMap(\.frames).map(\.timeMs)
  }

  private let expected = (0..<5).map { 1_767_859_512_340 + 1_000 * Int64($0) }

  @Test func archiveIsEncodedInsideOfTheSandbox() throws {
    let result = try EncoderWorker.run(
      "encode", archive, "--output", scratch.path("output"), "--sandbox", "require")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try instants("output", "deflated") == expected)
  }

  @Test func archiveIsEncodedFromAFileOnStandardInput() throws {
    let input = try Data(contentsOf: URL(fileURLWithPath: archive))
    let result = try EncoderWorker.run(
      "encode", "-", "--session", "file", "--output", scratch.path("output"), input: input)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try instants("output", "file") == expected)
  }

  @Test func archiveIsEncodedFromAPipe() throws {
    let script = #"cat "$1" | "$0" encode - --session pipe --output "$2""#
    let result = try Tool.run("sh", ["-c", script, EncoderWorker.path, archive, scratch.path("output")])
    #expect(result.status == 0, "\(result.errors)")
    #expect(try instants("output", "pipe") == expected)
  }

  @Test func damagedFrameIsRefusedAndOtherFramesArePublished() throws {
    var frames = try (0..<3).map {
      ZipArchive.Entry("\(expected[$0]).jpg", try Fixture("exact-1fps").bytes("000\($0).jpg"))
    }
    frames[1].packed[200] ^= 1
    let path = try scratch.file("damaged.zip", ZipArchive(frames).bytes)
    let result = try EncoderWorker.run("encode", path, "--output", scratch.path("output"))
    #expect(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("output/damaged"))
    #expect(session.manifests.flatMap(\.refused).map(\.reason) == ["damaged: its checksum is wrong"])
    #expect(try instants("output", "damaged") == [expected[0], expected[2]])
  }

  @Test func brokenArchiveIsRefusedWithTheReason() throws {
    let bytes = try Fixture("formats/zip/deflated@1.zip").bytes()
    let path = try scratch.file("cut.zip", Array(bytes.dropLast(100)))
    let result = try EncoderWorker.run("encode", path, "--output", scratch.path("output"))
    #expect(result.status == 65)
    #expect(result.errors.contains("cut.zip: a broken zip archive: it breaks off: no end record"), "\(result.errors)")
  }
}
