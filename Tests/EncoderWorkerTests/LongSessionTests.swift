import Foundation
import TestSupport
import Testing

/// An hour in 60 batches that meet with jitter, stitched by stock ffmpeg.
@Suite struct LongSessionTests {
  @Test func anHourStitchesWithoutError() throws {
    let scratch = try ScratchDirectory()
    let folder = try scratch.directory("batches")
    var random = Random(seed: 7)
    let start: Int64 = 1_767_859_512_340
    for batch in 0..<60 {
      let name = String(format: "hour@%03d", batch)
      let path = folder + "/" + name
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      for frame in 0..<60 {
        // The batch's first capture up to 400 ms off, the others up to 30.
        let jitter = batch + frame == 0 ? 0 : random.int(frame == 0 ? -400...400 : -30...30)
        let instant = start + Int64(batch * 60 + frame) * 1_000 + jitter
        let source = Fixture("exact-1fps").path + String(format: "/%04d.jpg", frame % 12)
        #expect(link(source, path + "/\(instant).jpg") == 0 || symlinkFails(source, path + "/\(instant).jpg"))
      }
    }
    let batches = try names(in: folder).map { folder + "/" + $0 }
    let result = try Tool.run(EncoderWorker.path, ["encode"] + batches + ["--output", scratch.path("output")])
    #expect(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("output/hour"))
    #expect(session.manifests.count >= 720)
    #expect(session.captured.count == 3_600)
    #expect(session.index.gaps.isEmpty)

    let film = scratch.path("film.mp4")
    try stitch(session.path, to: film)
    let probe = try Probe(film)
    let pts = Set(probe.packets(of: 0).map(\.pts))
    let wrong = session.captured.filter { !pts.contains(($0.timeMs - session.index.startMs) * 90) }
    #expect(wrong.isEmpty)
    #expect(probe.streams[0].durationTs == session.index.durationMs * 90)
    #expect(probe.packets(of: 0).allSatisfy { $0.pts == $0.dts })
  }

  /// A copy, where the scratch directory is on another file system than the fixtures.
  private func symlinkFails(_ source: String, _ target: String) -> Bool {
    (try? FileManager.default.copyItem(atPath: source, toPath: target)) != nil
  }
}
