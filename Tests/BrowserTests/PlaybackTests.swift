import Foundation
import TestSupport
import Testing

/// What a browser shows, and when: numbered pictures are read off the screen.
@Suite(.serialized) struct PlaybackTests {
  private static let fixtures = [
    "exact-1fps", "jittered", "gap", "rotation", "irregular-3fps", "on-change", "single-frame",
  ]
  .map { Fixture($0) }

  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Reads the number that a video shows, and waits for it to show one.
  private static let page = """
    function number(video) {
      const canvas = number.canvas ??= document.createElement('canvas');
      canvas.width = video.videoWidth, canvas.height = video.videoHeight;
      const context = number.context ??= canvas.getContext('2d', {willReadFrequently: true});
      context.drawImage(video, 0, 0);
      let result = 0;
      for (let bit = 0; bit < 8; bit++) {
        const x = Math.floor(canvas.width * (2 * bit + 1) / 16), y = Math.floor(canvas.height * 3 / 8);
        if (context.getImageData(x, y, 1, 1).data[1] > 127) result |= 1 << bit;
      }
      return result;
    }
    const event = (target, name) => new Promise((resolve, reject) => {
      target.addEventListener(name, resolve, {once: true});
      target.addEventListener('error', () => reject(`${name}: ${target.error?.message}`), {once: true});
    });
    async function film(file) {
      const video = Object.assign(document.createElement('video'), {muted: true});
      const loaded = event(video, 'loadeddata');
      video.src = URL.createObjectURL(await (await fetch(file)).blob());
      await loaded;
      return video;
    }
    async function seek(video, seconds) {
      const seeked = event(video, 'seeked');
      // The event may come before the picture does; and no picture comes where it is the one that is there.
      const shown = new Promise(resolve => video.requestVideoFrameCallback(resolve));
      video.currentTime = seconds;
      await seeked;
      await Promise.race([shown, new Promise(resolve => setTimeout(resolve, 500))]);
      return number(video);
    }
    // Plays to the end: which numbers were seen when, and when it had ended, in milliseconds.
    async function play(video) {
      const seen = {}, times = [];
      (function note(now, frame) {
        if (frame) times.push(frame.mediaTime * 1000);
        video.requestVideoFrameCallback(note);
      })();
      let hasEnded = false;
      const ended = event(video, 'ended').then(() => hasEnded = true);
      await video.play();
      const start = performance.now();
      (function look() {
        if (hasEnded) return;
        seen[number(video)] ??= performance.now() - start;
        requestAnimationFrame(look);
      })();
      await ended;
      return {seen, times, ended: performance.now() - start};
    }

    """

  private struct Play: Decodable {
    /// By number, in milliseconds from the beginning.
    let seen: [String: Double]
    /// Of the pictures that were put on screen, in milliseconds of the film.
    let times: [Double]
    let ended: Double
  }

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

  @Test func everyPausedSeekInAFilmShowsTheFrameCapturedLast() throws {
    let sessions = try Self.fixtures.map { try EncoderWorker.encode($0, into: scratch) }
    for session in sessions {
      let film = scratch.path("\(session.index.session).mp4")
      try #require(try EncoderWorker.run("stitch", session.path, "--to", film).status == 0)
    }
    let browser = try Browser(serving: scratch.path)
    let wanted = sessions.map { instants(of: $0, outsideGaps: false) }
    let shown = try browser.run(
      Self.page + """
        const result = [];
        for (const [file, instants] of parameters) {
          const video = await film(file), numbers = [];
          for (const instant of instants) numbers.push(await seek(video, instant / 1000 + 0.00001));
          result.push(numbers);
        }
        return result;
        """, parameters: zip(sessions, wanted).map { ["\($0.index.session).mp4", $1.map(\.atMs)] }, as: [[Int]].self)
    for (session, (numbers, instants)) in zip(sessions, zip(shown, wanted)) {
      #expect(numbers == instants.map(\.number), "\(session.index.session) at \(instants.map(\.atMs))")
    }
  }

  /// Fragments handed to Media Source Extensions as they are, as hls.js does it.
  @Test func everyPausedSeekInFragmentsShowsTheFrameCapturedLast() throws {
    let sessions = try Self.fixtures.map { try EncoderWorker.encode($0, into: scratch) }
    for session in sessions {
      let hls = scratch.path("hls-\(session.index.session)")
      try #require(try EncoderWorker.run("stitch", session.path, "--to", hls, "--format", "hls").status == 0)
    }
    let browser = try Browser(serving: scratch.path)
    let wanted = sessions.map { instants(of: $0, outsideGaps: true) }
    let shown = try browser.run(
      Self.page + """
        const result = [];
        for (const [directory, codec, instants] of parameters) {
          const video = document.createElement('video'), source = new MediaSource(), numbers = [];
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
          const ranges = [...Array(buffer.buffered.length).keys()].map(
            index => [buffer.buffered.start(index), buffer.buffered.end(index)].map(time => Math.round(time * 1000)));
          for (const instant of instants) numbers.push(await seek(video, instant / 1000 + 0.00001));
          result.push({numbers, ranges});
        }
        return result;
        """,
      parameters: zip(sessions, wanted).map {
        ["hls-\($0.index.session)", $0.manifests[0].codec, $1.map(\.atMs)] as [Any]
      }, as: [Seeks].self)
    for (session, (seeks, instants)) in zip(sessions, zip(shown, wanted)) {
      #expect(seeks.numbers == instants.map(\.number), "\(session.index.session) at \(instants.map(\.atMs))")
      // What is buffered is session time without its gaps.
      let start = session.index.startMs
      let inside = session.index.gaps.filter { $0.endMs < session.index.endMs }
      let end = session.manifests[session.manifests.count - 1].endMs
      let starts = [start] + inside.map(\.endMs)
      let ends = inside.map(\.startMs) + [end]
      #expect(seeks.ranges == zip(starts, ends).map { [$0 - start, $1 - start] })
    }
  }

  private struct Seeks: Decodable {
    let numbers: [Int]
    let ranges: [[Int64]]
  }

  /// Films, and playlists in the browser's own HLS player, which leaves gaps out: every frame is seen, none too early.
  /// Nothing is said of how late, since that is the machine's.
  @Test func filmsAndPlaylistsPlayThrough() throws {
    var expectations: [(file: String, captures: [(number: Int, atMs: Int64)], endMs: Int64)] = []
    for fixture in Self.fixtures {
      let session = try EncoderWorker.encode(fixture, into: scratch)
      let (start, name) = (session.index.startMs, session.index.session)
      let gaps = session.index.gaps
      try #require(try EncoderWorker.run("stitch", session.path, "--to", scratch.path("\(name).mp4")).status == 0)
      try #require(
        try EncoderWorker.run("stitch", session.path, "--to", scratch.path("hls-\(name)"), "--format", "hls").status
          == 0)
      let captures = session.captured.enumerated().map { (number: $0, atMs: $1.timeMs - start) }
      expectations.append(("\(name).mp4", captures, session.index.durationMs))
      let skipped = captures.map { number, atMs in
        (number, atMs - gaps.filter { $0.endMs - start <= atMs }.reduce(0) { $0 + $1.endMs - $1.startMs })
      }
      let shownMs = session.manifests.reduce(0) { $0 + $1.durationMs }
      expectations.append(("hls-\(name)/session.m3u8", skipped, shownMs))
    }
    let browser = try Browser(serving: scratch.path)
    let plays = try browser.run(
      Self.page + """
        return await Promise.all(parameters.map(async file => {
          if (file.endsWith('.mp4')) return play(await film(file));
          const video = Object.assign(document.createElement('video'), {muted: true});
          const loaded = event(video, 'loadeddata');
          video.src = file;
          await loaded;
          return play(video);
        }));
        """, parameters: expectations.map(\.file), as: [Play].self)
    for (expected, play) in zip(expectations, plays) { expect(play, expected.captures, expected.endMs, expected.file) }
  }

  /// Captures and ends that browsers cut short unless pictures are coded again; of each, the first segment is played.
  private static let segments: [(captures: [Int64], endMs: Int64)] = [
    ([0, 1_000, 2_000, 3_000, 4_000], 5_000),
    ([0, 1_012, 1_987, 3_020, 4_013], 5_000),
    ([0, 1_000, 2_000, 3_010, 4_730], 5_000),
    ([0], 5_000),
    ([0, 1_000, 4_000], 5_000),
    ([0, 3_000, 4_000], 5_000),
    ([0, 2_500], 5_000),
    ([0, 1_000, 2_000, 3_000, 4_900], 5_000),
    ([0, 1_000, 2_000, 3_000], 3_040),
    ([0, 353, 710, 1_024, 1_347, 1_670, 1_993, 2_378, 3_900], 4_030),
    ([0, 333, 666, 999, 1_332, 1_665, 1_998, 2_331, 2_664], 2_694),
    ([0, 250, 650, 960, 1_350, 1_610, 1_650], 1_950),
  ]

  @Test func segmentsPlayInRealTimeWhateverTheirCaptures() throws {
    let start: Int64 = 1_767_859_512_340
    for (row, segment) in Self.segments.enumerated() {
      let batch = try scratch.directory("row\(row)")
      for (number, capture) in segment.captures.enumerated() {
        let source = Fixture("exact-1fps").path + String(format: "/%04d.jpg", number)
        try FileManager.default.copyItem(atPath: source, toPath: "\(batch)/\(start + capture).jpg")
      }
      let description = #"{"version":1,"capture":"onChange","intervalMs":1000,"endMs":\#(start + segment.endMs)}"#
      try Data(description.utf8).write(to: URL(fileURLWithPath: batch + "/batch.json"))
      try #require(try EncoderWorker.run("encode", batch, "--output", scratch.path("output")).status == 0)
    }
    let plays = try Browser(serving: scratch.path).run(
      Self.page + "return await Promise.all(parameters.map(async file => play(await film(file))));",
      parameters: Self.segments.indices.map { "output/row\($0)/segment-\(start).mp4" }, as: [Play].self)
    for (row, play) in plays.enumerated() {
      let segment = try PublishedSession(scratch.path("output/row\(row)")).manifests[0]
      let captures = segment.offsetsMs.enumerated().map { (number: $0, atMs: $1) }
      expect(play, captures, segment.durationMs, "row\(row).mp4")
    }
  }

  private func expect(_ play: Play, _ captures: [(number: Int, atMs: Int64)], _ endMs: Int64, _ name: String) {
    let seen = captures.map { play.seen["\($0.number)"] }
    #expect(!seen.contains(nil), "\(name): \(play.seen)")
    for (seen, capture) in zip(seen, captures) {
      #expect((seen ?? 0) >= Double(capture.atMs) - 200, "\(name): \(capture)")
    }
    #expect(play.ended >= Double(endMs) - 100, "\(name)")
    guard name.hasSuffix(".mp4") else { return }
    // The first one may have been there before anybody looked.
    for capture in captures.dropFirst() {
      #expect(play.times.contains { abs($0 - Double(capture.atMs)) < 1 }, "\(name): \(capture) of \(play.times)")
    }
  }
}
