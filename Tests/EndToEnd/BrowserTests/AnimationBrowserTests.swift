import Foundation
import TestSupport
import Testing

/// Animated pictures as Chromium decodes them. `make browsers` shows them in Firefox and WebKitGTK, too.
@Suite struct AnimationBrowserTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private struct File: Encodable {
    let name: String
    let type: String
  }

  private struct Shown: Decodable, Equatable {
    let isAnimated: Bool
    let isEndless: Bool
    let width: Int
    let numbers: [Int]
    let holdsMs: [Double]
  }

  /// The hold is the one that the browser shows: it would be 100 ms instead of 10.
  private static let script = """
    const shown = [];
    for (const {name, type} of parameters) {
      const decoder = new ImageDecoder({data: await (await fetch(name)).arrayBuffer(), type});
      await Promise.all([decoder.completed, decoder.tracks.ready]);
      const {animated, repetitionCount, frameCount} = decoder.tracks.selectedTrack;
      const [numbers, holdsMs] = [[], []];
      const canvas = document.createElement('canvas');
      for (let frameIndex = 0; frameIndex < frameCount; frameIndex++) {
        const {image} = await decoder.decode({frameIndex});
        [canvas.width, canvas.height] = [image.displayWidth, image.displayHeight];
        const context = canvas.getContext('2d', {willReadFrequently: true});
        context.drawImage(image, 0, 0);
        const row = context.getImageData(0, Math.floor(canvas.height * 3 / 8), canvas.width, 1).data;
        let number = 0;
        for (let bit = 0; bit < 8; bit++) {
          if (row[4 * Math.floor(canvas.width * (2 * bit + 1) / 16) + 1] > 127) number |= 1 << bit;
        }
        numbers.push(number);
        holdsMs.push(image.duration / 1000);
        image.close();
      }
      shown.push({
        isAnimated: animated, isEndless: repetitionCount === Infinity, width: canvas.width, numbers, holdsMs});
    }
    return shown;
    """

  @Test func chromiumShowsEachPictureForItsHold() throws {
    var (files, expected): ([File], [Shown]) = ([], [])
    for fixture in ["jittered", "irregular-3fps", "gap"] {
      let session = try EncoderWorker.encode(Fixture(fixture), into: scratch)
      for (ending, unit) in [("gif", Int64(10)), ("webp", 1)] {
        for speed in [Int64(1), 10] {
          let name = "\(fixture)-\(speed).\(ending)"
          let result = try EncoderWorker.run(
            "stitch", session.path, "--to", scratch.path(name), "--speed", "\(speed)", "--max-side", "160")
          try #require(result.status == 0, "\(result.errors)")
          let starts = session.captured.map { $0.timeMs - session.index.startMs } + [session.index.durationMs]
          let bounds = starts.map { (2 * $0 + unit * speed) / (2 * unit * speed) * unit }
          files.append(File(name: name, type: "image/\(ending)"))
          expected.append(
            Shown(
              isAnimated: true, isEndless: true, width: 90, numbers: Array(session.captured.indices),
              holdsMs: zip(bounds, bounds.dropFirst()).map { Double($1 - $0) }))
        }
      }
    }
    let shown = try Browser(serving: scratch.path).run(Self.script, parameters: files, as: [Shown].self)
    for (file, (own, other)) in zip(files, zip(shown, expected)) { #expect(own == other, "\(file.name)") }
  }
}
