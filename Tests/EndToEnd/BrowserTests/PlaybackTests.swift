import Foundation
import TestSupport
import Testing

/// Tests which pictures a browser shows, and when. The tests read the painted numbers off the screen.
@Suite(.serialized) struct PlaybackTests {
  private static let fixtures = [
    "exact-1fps", "jittered", "gap", "rotation", "irregular-3fps", "on-change", "single-frame",
  ]
  .map { Fixture($0) }

  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Functions of the page: load a video, seek in it, play it, and read the number in its picture.
  private static let page = """
    function number(video) {
      const canvas = number.canvas ??= document.createElement('canvas');
      canvas.width = video.videoWidth, canvas.height = video.videoHeight;
      const context = number.context ??= canvas.getContext('2d', {willReadFrequently: true});
      context.drawImage(video, 0, 0);
      const row = context.getImageData(0, Math.floor(canvas.height * 3 / 8), canvas.width, 1).data;
      let result = 0;
      for (let bit = 0; bit < 8; bit++) {
        if (row[4 * Math.floor(canvas.width * (2 * bit + 1) / 16) + 1] > 127) result |= 1 << bit;
      }
      return result;
    }
    const event = (target, name) => new Promise((resolve, reject) => {
      target.addEventListener(name, resolve, {once: true});
      target.addEventListener('error', () => reject(`${name}: ${target.error?.message}`), {once: true});
    });
    // Only a broken file or browser takes this long.
    const within = (promise, what) => Promise.race([promise, new Promise(
      (_, reject) => setTimeout(() => reject(`${what}: nothing for 200 s`), 200_000))]);
    // Waits until a new video shows its first picture.
    async function firstPicture(video) {
      const loaded = event(video, 'loadeddata');
      const shown = new Promise(resolve => video.requestVideoFrameCallback((_, frame) => resolve(frame)));
      await within(loaded, 'loadeddata');
      video.firstFrame = await within(shown, 'first picture');
    }
    async function film(file) {
      const video = Object.assign(document.createElement('video'), {muted: true});
      const ready = firstPicture(video);
      video.src = file.endsWith('.mp4') ? URL.createObjectURL(await (await fetch(file)).blob()) : file;
      await ready;
      return video;
    }
    // Chromium presents a picture after each seek, except a seek to the current position.
    async function seek(video, seconds) {
      if (video.currentTime !== Math.min(seconds, video.duration)) {
        const seeked = event(video, 'seeked');
        const shown = new Promise(resolve => video.requestVideoFrameCallback(resolve));
        video.currentTime = seconds;
        await within(seeked, `seeked event at ${seconds} s`);
        await within(shown, `picture after the seek to ${seconds} s`);
      }
      return number(video);
    }
    // Plays to the end. Reads each picture when the browser reports that it presents the picture. Counts the pictures
    // that the browser dropped, and those that this page read too late.
    async function play(video) {
      const seen = {}, times = [];
      let [presented, missed, lateMs] = [video.firstFrame.presentedFrames, 0, 0];
      const start = performance.now();
      const look = () => seen[number(video)] ??= performance.now() - start;
      look();
      video.requestVideoFrameCallback(function note(_, frame) {
        times.push(frame.mediaTime * 1000);
        missed += Math.max(0, frame.presentedFrames - presented - 1);
        presented = frame.presentedFrames;
        look();
        lateMs = Math.max(lateMs, performance.now() - frame.presentationTime);
        video.requestVideoFrameCallback(note);
      });
      const ended = event(video, 'ended');
      await within(video.play(), 'start of playback');
      await within(ended, `end of ${video.duration} s`);
      const endedMs = performance.now() - start;
      look();
      const dropped = video.getVideoPlaybackQuality().droppedVideoFrames;
      return {seen, times, endedMs, dropped, missed, lateMs};
    }
    // A busy machine can drop pictures although the file is good. Plays again while pictures are missing and the
    // browser reports drops or late frames.
    async function playThrough([file, numbers, times]) {
      const attempts = [];
      while (true) {
        const attempt = await play(await film(file));
        attempts.push(attempt);
        const isComplete = numbers.every(number => attempt.seen[number] !== undefined)
          && times.every(time => attempt.times.some(other => Math.abs(other - time) < 1));
        const isDisturbed = attempt.dropped > 0 || attempt.missed > 0 || attempt.lateMs > 30;
        if (isComplete || !isDisturbed || attempts.length === 8) return attempts;
      }
    }

    """

  /// One attempt to play a file to its end.
  private struct Play: Decodable {
    /// Milliseconds from the start of the attempt to the first presentation of each number.
    let seen: [String: Double]
    /// Media times of the presented pictures, in milliseconds.
    let times: [Double]
    let endedMs: Double
    /// Pictures that the browser counts as dropped.
    let dropped: Int
    /// Presented pictures for which the page got no callback.
    let missed: Int
    /// The longest delay between the presentation of a picture and the page's callback, in milliseconds.
    let lateMs: Double
  }

  /// A file to play, and its pictures.
  private struct Film {
    let file: String
    let captures: [(number: Int, atMs: Int64)]
    let endMs: Int64

    /// Media times that the browser must present. The first picture is on screen before playback starts. Chromium's HLS
    /// player has its own time base.
    var times: [Int64] { file.hasSuffix(".mp4") ? captures.dropFirst().map(\.atMs) : [] }
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
        for (const [directory, codec, instants] of parameters) {
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
        ["hls-\($0.index.session)", $0.manifests[0].codec, $1.map(\.atMs)] as [Any]
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

  private struct Seeks: Decodable {
    let numbers: [Int]
    let ranges: [[Int64]]
  }

  /// Plays films, and playlists in the browser's own HLS player, which skips gaps. The browser must show every frame,
  /// and none too early. There is no upper bound on times: lateness depends on the machine.
  @Test func filmsAndPlaylistsPlayThrough() throws {
    var films: [Film] = []
    for fixture in Self.fixtures {
      let session = try EncoderWorker.encode(fixture, into: scratch)
      let (start, name) = (session.index.startMs, session.index.session)
      let gaps = session.index.gaps
      try #require(try EncoderWorker.run("stitch", session.path, "--to", scratch.path("\(name).mp4")).status == 0)
      try #require(
        try EncoderWorker.run("stitch", session.path, "--to", scratch.path("hls-\(name)"), "--format", "hls").status
          == 0)
      let captures = session.captured.enumerated().map { (number: $0, atMs: $1.timeMs - start) }
      films.append(Film(file: "\(name).mp4", captures: captures, endMs: session.index.durationMs))
      let skipped = captures.map { number, atMs in
        (number, atMs - gaps.filter { $0.endMs - start <= atMs }.reduce(0) { $0 + $1.endMs - $1.startMs })
      }
      let shownMs = session.manifests.reduce(0) { $0 + $1.durationMs }
      films.append(Film(file: "hls-\(name)/session.m3u8", captures: skipped, endMs: shownMs))
    }
    try expectToPlay(films)
  }

  /// Cuts before, at and behind captures, at seams of segments, and in a gap. The first picture is on screen before playback.
  @Test func clipsPlayFromTheirFirstPictureToTheirEnd() throws {
    var films: [Film] = []
    for (name, ranges, speed): (String, [Range<Int64>], String) in [
      ("exact-1fps", [2_300..<5_700, 4_999..<6_001, 1_000..<3_001, 3_999..<4_400], "1"),
      ("irregular-3fps", [1_111..<3_333], "1"), ("gap", [6_500..<9_500, 14_000..<17_000], "1"),
      ("rotation", [1_500..<4_200], "1"), ("on-change", [500..<4_000], "1"), ("exact-1fps", [2_300..<8_700], "2.5"),
      ("irregular-3fps", [1_111..<2_221], "0.4"),
    ] {
      let session = try EncoderWorker.encode(Fixture(name), into: scratch)
      for range in ranges {
        let file = "clip-\(films.count).mp4"
        let start = session.index.startMs
        let result = try EncoderWorker.run(
          "stitch", session.path, "--to", scratch.path(file), "--from", "\(start + range.lowerBound)", "--to-time",
          "\(start + range.upperBound)", "--speed", speed)
        try #require(result.status == 0, "\(result.errors)")
        let captures = session.captured.enumerated().map { (number: $0, atMs: $1.timeMs - start) }
        let factor = try #require(Double(speed))
        let shown = captures.filter { capture in
          capture.atMs < range.upperBound
            && captures.dropFirst(capture.number + 1).first.map { $0.atMs > range.lowerBound } ?? true
        }.map { ($0.number, Int64(Double(max(0, $0.atMs - range.lowerBound)) / factor)) }
        films.append(Film(file: file, captures: shown, endMs: Int64(Double(range.count) / factor)))
      }
    }
    let first = try Browser(serving: scratch.path).run(
      Self.page + """
        const result = [];
        for (const file of parameters) {
          const video = await film(file);
          result.push([number(video), Math.round(video.duration * 1000)]);
        }
        return result;
        """, parameters: films.map(\.file), as: [[Int64]].self)
    #expect(first == films.map { [Int64($0.captures[0].number), $0.endMs] })
    try expectToPlay(films)
  }

  /// Captures and ends that browsers cut short unless the encoder repeats pictures. The test plays the first segment of
  /// each.
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

  @Test func segmentsWithIrregularCapturesPlayInRealTime() throws {
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
    try expectToPlay(
      Self.segments.indices.map { row in
        let segment = try PublishedSession(scratch.path("output/row\(row)")).manifests[0]
        let captures = segment.offsetsMs.enumerated().map { (number: $0, atMs: $1) }
        return Film(
          file: "output/row\(row)/segment-\(start).mp4", captures: captures, endMs: segment.durationMs)
      })
  }

  private func expectToPlay(_ films: [Film]) throws {
    let plays = try Browser(serving: scratch.path).run(
      Self.page + "return await Promise.all(parameters.map(playThrough));",
      parameters: films.map { [$0.file, $0.captures.map(\.number), $0.times] as [Any] }, as: [[Play]].self)
    for (film, attempts) in zip(films, plays) {
      for attempt in attempts { expectNothingWrong(in: attempt, of: film) }
      let last = try #require(attempts.last)
      let state = "\(film.file): attempt \(attempts.count): \(last)"
      for capture in film.captures { #expect(last.seen["\(capture.number)"] != nil, "\(capture) in \(state)") }
      for time in film.times { #expect(last.times.contains { abs($0 - Double(time)) < 1 }, "\(time) ms in \(state)") }
    }
  }

  /// Checks conditions that hold for each attempt, even on a busy machine.
  private func expectNothingWrong(in attempt: Play, of film: Film) {
    let numbers = Set(film.captures.map { "\($0.number)" })
    #expect(numbers.isSuperset(of: attempt.seen.keys), "\(film.file): \(attempt.seen)")
    for capture in film.captures {
      guard let seen = attempt.seen["\(capture.number)"] else { continue }
      #expect(seen >= Double(capture.atMs) - 200, "\(film.file): \(capture)")
    }
    #expect(attempt.endedMs >= Double(film.endMs) - 100, "\(film.file): \(attempt)")
  }
}
