import Foundation
import TestSupport
import Testing

/// Frames that the worker composes from several layers.
@Suite struct LayerTests {
  let scratch: ScratchDirectory

  init() throws {
    scratch = try ScratchDirectory()
    _ = try scratch.directory("batch")
  }

  /// Writes a file of one colour. Returns its description for `batch.json`.
  private func plane(_ name: String, _ colour: [UInt8], width: Int, height: Int) throws -> String {
    try scratch.file("batch/" + name, (0..<width * height).flatMap { _ in colour })
    return
      #""file":"\#(name)","pixels":{"format":"RGBA","alpha":"straight","width":\#(width),"height":\#(height)}"#
  }

  private func encode(_ frames: [String], more: String = "") throws -> (PublishedSession, [Pixels]) {
    let list = frames.enumerated().map { #"{"timeMs":\#(1_767_859_512_340 + 1_000 * $0),\#($1)}"# }
    try scratch.file(
      "batch/batch.json", Array(#"{"version":1,\#(more)"frames":[\#(list.joined(separator: ","))]}"#.utf8))
    let result = try EncoderWorker.run(
      "encode", scratch.path("batch"), "--output", scratch.path("output"), "--quality", "sharp")
    try #require(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("output/batch"))
    let manifest = session.manifests[0]
    return (
      session,
      try Pixels.decode(session.video(manifest), width: manifest.codedWidth, height: manifest.codedHeight)
    )
  }

  private func expect(
    _ picture: Pixels, _ x: Int, _ y: Int, _ colour: [Int], within noise: Int = 8,
    _ location: SourceLocation = #_sourceLocation
  ) {
    let seen = picture[x, y]
    #expect(
      zip(seen, colour).allSatisfy { abs(Int($0) - $1) <= noise }, "\(x), \(y): \(seen)", sourceLocation: location)
  }

  @Test func layersAreComposedByPositionOrderAndOpacity() throws {
    let back = try plane("back.raw", [200, 100, 40, 255], width: 160, height: 120)
    let window = try plane("window.raw", [20, 60, 200, 255], width: 10, height: 10)
    let glass = try plane("glass.raw", [255, 255, 255, 128], width: 20, height: 20)
    let (session, pictures) = try encode([
      // The list has any order; the window is stretched and partly outside the screen.
      #"""
      "width":160,"height":120,"layers":[
        {\#(window),"x":112,"y":80,"width":80,"height":80,"z":2,"opacity":0.5},
        {\#(back)},
        {\#(glass),"x":32,"y":32,"width":32,"height":32,"z":1},
        {\#(window),"x":-8,"y":-8,"width":24,"height":24,"z":1}]
      """#
    ])
    let frame = session.manifests[0].frames[0]
    #expect(frame.source == "window.raw+back.raw+glass.raw+window.raw")
    #expect((session.manifests[0].width, session.manifests[0].height) == (160, 120))
    expect(pictures[0], 80, 20, [200, 100, 40])
    expect(pictures[0], 8, 8, [20, 60, 200])
    expect(pictures[0], 24, 24, [200, 100, 40])
    expect(pictures[0], 48, 48, [228, 178, 148])
    expect(pictures[0], 140, 100, [110, 80, 120])
    expect(pictures[0], 100, 100, [200, 100, 40])
  }

  @Test func pointsAndMasksApplyToLayers() throws {
    let back = try plane("back.raw", [200, 200, 200, 255], width: 160, height: 120)
    let window = try plane("window.raw", [20, 160, 60, 255], width: 64, height: 64)
    let (session, pictures) = try encode(
      [
        // A layer's masks are relative to its corner and lie below the layers above it.
        #"""
        "width":80,"height":60,"layers":[
          {\#(back),"masks":[{"x":0,"y":0,"width":80,"height":20}]},
          {\#(window),"x":40,"y":8,"width":32,"height":32,"masks":[{"x":8,"y":16,"width":16,"height":8}]}],
        "masks":[{"x":0,"y":50,"width":80,"height":10,"color":"#0000ff"}]
        """#,
        #""width":80,"height":60,"layers":[{\#(back),"masks":[{"x":0}]},{\#(window)}]"#,
        #""width":80,"height":60,"layers":[{\#(back)}],"masks":[{"x":0}]"#,
      ], more: ##""scale":2,"maskColor":"#ff0000","##)
    expect(pictures[0], 30, 20, [255, 0, 0])
    expect(pictures[0], 100, 28, [20, 160, 60])
    expect(pictures[0], 112, 56, [255, 0, 0])
    expect(pictures[0], 30, 70, [200, 200, 200])
    expect(pictures[0], 80, 110, [0, 0, 255])
    for picture in pictures[1...2] { #expect(picture.bytes.allSatisfy { $0 <= 8 }) }
    let reason = "mask 0 is not a finite rectangle"
    #expect(
      session.manifests.flatMap(\.frames).map(\.note) == [
        nil, "blacked out: layers[0]: \(reason)", "blacked out: \(reason)",
      ])
  }

  /// Edges fall between pixels; a pixel that the mask covers completely is masked.
  @Test(arguments: [(0.49, 100.02), (0, 1.02), (12.5, 3.4), (-0.6, 0.7)])
  func maskIsScaledWithItsLayer(x: Double, width: Double) throws {
    let red = try plane("red.raw", [255, 0, 0, 255], width: 20, height: 20)
    let (_, pictures) = try encode([
      #"""
      "width":120,"height":40,"layers":[
        {\#(red),"x":\#(x),"y":1.4,"width":\#(width),"height":20.3,"masks":[{"x":0,"y":0,"width":\#(width),"height":20.3}]}]
      """#
    ])
    #expect(pictures[0].bytes.allSatisfy { $0 <= 8 })
  }

  @Test func totalSizeOfAFramesFilesIsLimited() throws {
    let back = try plane("back.raw", [200, 100, 40, 255], width: 32, height: 32)
    // Four files of 40 MiB of zeros.
    let big = scratch.path("batch/big.raw")
    try scratch.file("batch/big.raw", [])
    #expect(truncate(big, 40 << 20) == 0)
    let layer = #"{"file":"big.raw","pixels":{"format":"RGBA","width":4096,"height":2560}}"#
    let (session, _) = try encode([back, #""width":32,"height":32,"layers":[\#(layer),\#(layer),\#(layer),\#(layer)]"#])
    #expect(
      session.manifests[0].refused.map(\.reason) == [
        "decode big.raw+big.raw+big.raw+big.raw: big.raw: more than 134217728 bytes in all layers; raise the limit with --limit frame-bytes=167772160"
      ])
  }

  /// Good frames lie between the bad ones and are held.
  @Test func framesThatCannotBeComposedAreRefused() throws {
    let back = try plane("back.raw", [200, 100, 40, 255], width: 32, height: 32)
    try scratch.file("batch/short.raw", [1, 2, 3])
    let size = #""width":32,"height":32"#
    let bad: [(frame: String, reason: String)] = [
      (#""layers":[{\#(back)}]"#, "no \"width\""),
      (#""width":0,"height":32,"layers":[{\#(back)}]"#, "a picture of 0×32 pixels"),
      (#""width":1e9,"height":32,"layers":[{\#(back)}]"#, "width: not a number of a reasonable size"),
      (#"\#(size),"layers":[{\#(back),"opacity":2}]"#, "layers[0]: opacity: not a number from 0 to 1"),
      (#"\#(size),"layers":[{\#(back),"x":NaN}]"#, "layers[0]: x: not a number of a reasonable size"),
      (#"\#(size),"layers":[{\#(back),"width":3}]"#, "layers[0]: no \"height\""),
      (#"\#(size),"layers":[{\#(back)},{"file":"gone.png"}]"#, "gone.png: missing"),
      (#"\#(size),"layers":[{"file":"short.raw"}]"#, "layer 0: not an image of a known format"),
      (
        #""file":"short.raw","pixels":{"format":"BGRA","width":2,"height":2}"#, "3 bytes; 2×2 BGRA has 16"
      ),
      (
        #""file":"a","pixels":{"format":"ARGB","width":2,"height":2}"#, "pixels: format: not one of BGRA, RGBA, BGR10A8"
      ),
      (#""file":"b","pixels":{"format":"RGBA","width":2}"#, "pixels: no \"height\""),
      (
        #""file":"c","pixels":{"format":"RGBA","width":2,"height":2,"bytesPerRow":7}"#,
        "pixels: bytesPerRow 7; 8 at least"
      ),
      (#""file":"d","pixels":{"format":"RGBA","width":90000,"height":2}"#, "more than the limit"),
    ]
    for (frame, reason) in bad {
      let (session, pictures) = try encode([back, frame])
      let reasons = session.manifests[0].refused.map(\.reason).filter { $0 != "not listed in batch.json" }
      #expect(reasons.count == 1 && reasons[0].contains(reason), "\(reasons)")
      expect(pictures[0], 16, 16, [200, 100, 40])
      try FileManager.default.removeItem(atPath: scratch.path("output"))
    }
  }
}
