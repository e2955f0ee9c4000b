import Foundation
import TestSupport
import Testing

/// A browser that seeks while it is paused shows the latest capture. The tests read the painted numbers off the screen.
@Suite(.serialized) struct SeekTests: PlaybackSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Random instants of a session and the number of the frame captured last at each, in milliseconds from its start.
  private func instants(of session: PublishedSession, outsideGaps: Bool) -> [(atMs: Int64, number: Int)] {
    var random = Random(seed: session.index.frames)
    let start = session.index.startMs
    let gaps = session.index.gaps
    var instants: [(atMs: Int64, number: Int)] = []
    while instants.count < 40 {
      let instant = start + random.int(0...session.index.durationMs - 1)
      if outsideGaps, gaps.contains(where: { ($0.startMs..<$0.endMs).contains(instant) }) { continue }
      instants.append((instant - start, session.captured.lastIndex { $0.timeMs <= instant } ?? -1))
    }
    return instants
  }

  @Test func pausedSeekInAFilmShowsTheLatestCapture() throws {
    let encoded = try Self.fixtures.map { try EncoderWorker.encode($0, into: scratch) }
    let sessions = try encoded + [SegmentFolder.importedSession(in: scratch)]
    for session in sessions {
      let film = scratch.path("\(session.index.session).mp4")
      try #require(try EncoderWorker.run("stitch", session.path, "--to", film).status == 0)
    }
    let browser = try Browser(serving: scratch.path)
    let wanted = sessions.map { instants(of: $0, outsideGaps: false) }
    let shown = try browser.run(
      Self.page + """
        const result = [];
        for (const {file, instants} of parameters) {
          const video = await film(file), numbers = [];
          for (const instant of instants) numbers.push(await seek(video, instant / 1000 + 0.00001));
          result.push(numbers);
        }
        return result;
        """, parameters: zip(sessions, wanted).map { Film(file: "\($0.index.session).mp4", instants: $1.map(\.atMs)) },
      as: [[Int]].self)
    for (session, (numbers, instants)) in zip(sessions, zip(shown, wanted)) {
      #expect(numbers == instants.map(\.number), "\(session.index.session) at \(instants.map(\.atMs))")
    }
  }

  /// Appends unchanged fragments to Media Source Extensions, as hls.js does.
  @Test func pausedSeekInFragmentsShowsTheLatestCapture() throws {
    let encoded = try Self.fixtures.map { try EncoderWorker.encode($0, into: scratch) }
    let sessions = try encoded + [SegmentFolder.importedSession(in: scratch)]
    for session in sessions {
      let hls = scratch.path("hls-\(session.index.session)")
      try #require(try EncoderWorker.run("stitch", session.path, "--to", hls, "--format", "hls").status == 0)
    }
    let browser = try Browser(serving: scratch.path)
    let wanted = sessions.map { instants(of: $0, outsideGaps: true) }
    let shown = try browser.run(
      Self.page + """
        const result = [];
        for (const {directory, codec, instants} of parameters) {
          const video = document.createElement('video'), source = new MediaSource(), numbers = [];
          const ready = firstPicture(video);
          video.src = URL.createObjectURL(source);
          await event(source, 'sourceopen');
          const buffer = source.addSourceBuffer(`video/mp4; codecs="${codec}"`);
          for (const line of (await (await fetch(`${directory}/session.m3u8`)).text()).split('\\n')) {
            const file = line.match(/^#EXT-X-MAP:URI="(.*)"/)?.[1] ?? (line.startsWith('segment-') ? line : null);
            if (!file) continue;
            buffer.appendBuffer(await (await fetch(`${directory}/${file}`)).arrayBuffer());
            await event(buffer, 'updateend');
          }
          source.endOfStream();
          await ready;
          const ranges = [...Array(buffer.buffered.length).keys()].map(
            index => [buffer.buffered.start(index), buffer.buffered.end(index)].map(time => Math.round(time * 1000)));
          for (const instant of instants) numbers.push(await seek(video, instant / 1000 + 0.00001));
          result.push({numbers, ranges});
        }
        return result;
        """,
      parameters: zip(sessions, wanted).map {
        Stream(directory: "hls-\($0.index.session)", codec: $0.manifests[0].codec, instants: $1.map(\.atMs))
      }, as: [Seeks].self)
    for (session, (seeks, instants)) in zip(sessions, zip(shown, wanted)) {
      #expect(seeks.numbers == instants.map(\.number), "\(session.index.session) at \(instants.map(\.atMs))")
      // The buffer covers the session time without its gaps.
      let start = session.index.startMs
      let inside = session.index.gaps.filter { $0.endMs < session.index.endMs }
      let end = session.manifests[session.manifests.count - 1].endMs
      let starts = [start] + inside.map(\.endMs)
      let ends = inside.map(\.startMs) + [end]
      #expect(seeks.ranges == zip(starts, ends).map { [$0 - start, $1 - start] })
    }
  }

  /// A film as the page gets it, and the instants to seek to.
  private struct Film: Encodable {
    let file: String
    let instants: [Int64]
  }

  /// A directory of fragments as the page gets it, and the instants to seek to.
  private struct Stream: Encodable {
    let directory, codec: String
    let instants: [Int64]
  }

  private struct Seeks: Decodable {
    let numbers: [Int]
    let ranges: [[Int64]]
  }
}
