import Foundation
import TestSupport
import Testing

/// For random sessions with batches in random order, each output form shows each frame at its capture time, as ffprobe
/// reads it.
@Suite struct GeneratedSessionTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  @Test(arguments: Extent.of(1...6, full: 1...24))
  func everyFormShowsEveryFrameAtItsCapture(seed: Int) throws {
    let generated = try GeneratedSession(seed: seed, in: scratch)
    for batch in generated.batches {
      let result = try EncoderWorker.run("encode", batch, "--output", scratch.path("output"))
      try #require(result.status == 0, "\(result.errors)")
    }
    let session = try PublishedSession(scratch.path("output/" + generated.name))
    #expect(session.captured.map(\.timeMs) == generated.frames.map(\.timeMs))
    #expect(session.index.startMs == generated.frames[0].timeMs)
    let verification = try EncoderWorker.run("verify", session.path)
    #expect(verification.status == 0, "\(verification.text)")

    let film = scratch.path("film.mp4")
    #expect(try EncoderWorker.run("stitch", session.path, "--to", film).status == 0)
    let probe = try Probe(film)
    expectEveryCapture(of: session, in: probe, film, isFilm: true)
    #expect(probe.streams[0].durationTs == session.index.durationMs * 90)
    try expectTimingTrack(of: session, in: probe, film)
    let start = session.index.startMs
    let end = session.manifests[session.manifests.count - 1].endMs
    let gaps = session.index.gaps

    let cut = scratch.path("cut.mp4")
    #expect(try EncoderWorker.run("stitch", session.path, "--to", cut, "--gaps", "cut").status == 0)
    let instants = Set(try Probe(cut).packets(of: 0).map(\.pts))
    for frame in session.captured {
      let before = gaps.filter { $0.endMs <= frame.timeMs }.reduce(0) { $0 + $1.endMs - $1.startMs }
      #expect(instants.contains((frame.timeMs - start - before) * 90))
    }

    let hls = scratch.path("hls")
    #expect(try EncoderWorker.run("stitch", session.path, "--to", hls, "--format", "hls").status == 0)
    expectEveryCapture(of: session, in: try Probe(hls + "/session.m3u8"), "HLS")
    let lengths = try String(contentsOfFile: hls + "/session.m3u8", encoding: .utf8).split(separator: "\n")
      .filter { $0.hasPrefix("#EXTINF:") }.map { Int64($0.filter(\.isNumber)) ?? -1 }
    #expect(lengths.reduce(0, +) == end - start)

    let stock = scratch.path("stock.mp4")
    try Tool.output(
      "ffmpeg",
      ["-v", "error", "-f", "concat", "-safe", "0", "-i", session.path + "/session.ffconcat", "-c", "copy", stock])
    let stockProbe = try Probe(stock)
    expectEveryCapture(of: session, in: stockProbe, stock)
    #expect(stockProbe.streams[0].durationTs == (end - start) * 90)
  }

  /// Expects the film to show each capture at the time in its timing track.
  private func expectTimingTrack(of session: PublishedSession, in probe: Probe, _ film: String) throws {
    let texts = try Probe.timingTexts(film)
    let packets = probe.packets(of: 1).filter { $0.size != "2" }
    #expect(texts.count == packets.count)
    for (text, packet) in zip(texts, packets) where text.continued != true {
      #expect(packet.pts == (text.t - session.index.startMs) * 90)
    }
    #expect(texts.filter { $0.continued != true }.map(\.t) == session.captured.map(\.timeMs))
  }

  /// Expects a sample to start at each capture, and key frames to start segments.
  private func expectEveryCapture(of session: PublishedSession, in probe: Probe, _ file: String, isFilm: Bool = false) {
    let packets = probe.packets(of: 0)
    let start = session.index.startMs
    let instants = Set(packets.map(\.pts))
    let missing = session.captured.filter { !instants.contains(($0.timeMs - start) * 90) }
    #expect(missing.isEmpty, "\(file): \(missing)")
    // A film needs no key frame of the picture on screen.
    let keys = packets.filter(\.isKey).map(\.pts)
    let starts = session.manifests.map { ($0.startMs - start) * 90 }
    #expect(isFilm ? keys.first == 0 && Set(keys).isSubset(of: starts) : keys == starts, "\(file)")
    #expect(packets.map(\.pts) == packets.map(\.pts).sorted(), "\(file)")
  }
}
