import Foundation
import TestSupport
import Testing

/// Files of several pictures, of few bits, and drawings on transparency, as the commands show them.
@Suite struct SequenceTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func run(_ words: String...) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words, in: scratch.url)
  }

  /// Runs Pillow with pictures 0 to 3 in `p`.
  private func pillow(_ script: String) throws {
    let all =
      "import os; from PIL import Image; p = [Image.new('RGB', (64, 48), (60 * n, 200, 90)) for n in range(4)]\n"
    _ = try Tool.output(Tool.python, ["-c", "import os; os.chdir('\(scratch.path)')\n" + all + script])
  }

  @Test func filmOfOneAnimationShowsAllItsPicturesFromZero() throws {
    try pillow("p[0].save('a.gif', save_all=True, append_images=p[1:], duration=500)")
    let film = try run("film", "a.gif", "--to", "a.mp4")
    #expect(film.status == 0 && film.text.contains(" 2.0 s") && film.errors.isEmpty, "\(film.text)\(film.errors)")
    let refused = try run("encode", "a.gif", "--output", "out")
    #expect(refused.status == 65 && refused.errors.contains("--start 2026-01-08T08:05:12Z"), "\(refused.errors)")
    let encoded = try run("encode", "a.gif", "--output", "out", "--start", "2026-01-08T08:05:12Z", "--json")
    #expect(encoded.status == 0 && encoded.text.contains(#""frames":4"#), "\(encoded.text)\(encoded.errors)")
    let enqueued = try run("enqueue", "a.gif", "--spool", "spool", "--start", "2026-01-08T08:05:12Z")
    #expect(enqueued.status == 65 && enqueued.errors.contains("encode it"), "\(enqueued.errors)")
  }

  /// AV1 by ffmpeg, which writes image sequences from version 6 on: here an MP4 gets their name and brand.
  @Test func imageSequenceIsAFilm() throws {
    _ = try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", "testsrc=size=64x48:rate=4:duration=2", "-c:v", "libaom-av1", "-cpu-used",
        "8",
        "-pix_fmt", "yuv420p", "-f", "mp4", scratch.path("a.mp4"),
      ])
    var file = try Data(contentsOf: URL(fileURLWithPath: scratch.path("a.mp4")))
    file.replaceSubrange(8..<12, with: Data("avis".utf8))
    try FileManager.default.createDirectory(atPath: scratch.path("in"), withIntermediateDirectories: true)
    try file.write(to: URL(fileURLWithPath: scratch.path("in/1767859512000.avif")))
    let film = try run("film", "in/1767859512000.avif", "--to", "film.mp4")
    #expect(film.status == 0 && film.text.contains(" 2.0 s") && film.errors.isEmpty, "\(film.text)\(film.errors)")
  }

  @Test func picturesThatAreLeftOutAreCounted() throws {
    try pillow(
      "os.mkdir('in')\nfor n in (0, 3): p[0].save(f'in/{1767859512000 + 1000 * n}.gif', save_all=True, append_images=p[1:])"
    )
    let encoded = try run("encode", "in", "--output", "out", "--json")
    #expect(encoded.status == 0 && encoded.text.contains("2 files have several pictures"), "\(encoded.text)")
    #expect(encoded.text.contains("6 are left out"), "\(encoded.text)")
    let manifest = try String(
      contentsOfFile: scratch.path("out/in/segment-1767859512000.json"), encoding: .utf8)
    #expect(manifest.contains("shown by the first of its 4 pictures"), "\(manifest)")
    let inspected = try run("encode", "--dry-run", "in", "--json")
    #expect(inspected.text.contains("6 are left out"), "\(inspected.text)")
  }

  @Test func bitsAndBackgroundOfTheAdviceShowThePicture() throws {
    try pillow(
      """
      for d in ('bits', 'draw'): os.mkdir(d)
      Image.frombytes('I;16', (64, 48), (4095).to_bytes(2, 'little') * 64 * 48).save('bits/1767859512000.png')
      Image.new('RGBA', (64, 48)).save('draw/1767859511000.png')
      i = Image.new('RGBA', (64, 48)); i.paste((0, 0, 0, 255), (0, 0, 32, 48)); i.save('draw/1767859512000.png')
      """)
    let dark = try run("encode", "bits", "--output", "out", "--session", "dark")
    #expect(dark.status == 0 && dark.errors.contains("--bits 12"), "\(dark.errors)")
    let black = try run("encode", "draw", "--output", "out", "--session", "black")
    #expect(black.status == 0 && black.errors.contains("--background white"), "\(black.errors)")
    #expect(try run("encode", "bits", "--output", "out", "--bits", "12").errors.isEmpty)
    #expect(try run("encode", "draw", "--output", "out", "--background", "white").errors.isEmpty)
    let manifest = try String(contentsOfFile: scratch.path("out/dark/segment-1767859512000.json"), encoding: .utf8)
    #expect(!manifest.contains(#""bits":"#))
    #expect(try run("encode", "bits", "--output", "x", "--bits", "7").status == 64)
  }
}
