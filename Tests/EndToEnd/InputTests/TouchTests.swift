import Foundation
import JSON
import TestSupport
import Testing

/// Pointer events of batches in the manifests that the program writes.
@Suite struct TouchTests {
  private static let start = 1_767_859_512_340
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Writes a batch of eight frames, of 180×320 pixels, one a second.
  ///
  /// - Parameters:
  ///   - masks: the masks by the index of the frame.
  ///   - members: more members of `batch.json`.
  private func batch(_ name: String, masks: [Int: String] = [:], _ members: String = "") throws -> String {
    let path = try scratch.directory(name)
    let frames = try (0..<8).map { index in
      try scratch.file("\(name)/\(index).jpg", Fixture("exact-1fps").bytes("000\(index).jpg"))
      let masks = masks[index].map { #","masks":\#($0)"# } ?? ""
      return #"{"file":"\#(index).jpg","timeMs":\#(Self.start + 1_000 * index)\#(masks)}"#
    }
    let json = #"{"version":1,"session":"s","frames":[\#(frames.joined(separator: ","))]\#(members)}"#
    try scratch.file("\(name)/batch.json", Array(json.utf8))
    return path
  }

  private static func event(_ timeMs: Int, _ kind: String, _ x: String, _ y: String) -> String {
    #"{"timeMs":\#(start + timeMs),"type":"\#(kind)","x":\#(x),"y":\#(y)}"#
  }

  private static func events(_ list: [String]) -> String { #","events":[\#(list.joined(separator: ","))]"# }

  /// Encodes a batch.
  ///
  /// - Returns: all that the program prints, and the manifests.
  @discardableResult
  private func encode(_ path: String, to output: String) throws -> (printed: String, manifests: [SegmentManifestJSON]) {
    let result = try EncoderWorker.run("encode", path, "--output", scratch.path(output))
    try #require(result.status == 0, "\(result.errors)")
    return (result.text + result.errors, try manifests(scratch.path(output)))
  }

  private func manifests(_ output: String) throws -> [SegmentManifestJSON] {
    let session = try #require(try names(in: output).first { !$0.hasPrefix(".") })
    return try names(in: "\(output)/\(session)").sorted().filter { $0.hasPrefix("segment-") && $0.hasSuffix(".json") }
      .map { try SegmentManifestJSON("\(output)/\(session)/\($0)") }
  }

  /// The touches of a manifest, as the text of its member.
  private static func touches(_ manifest: SegmentManifestJSON) -> String? { manifest["touches"]?.line }

  @Test func eventsAreInTheManifestOfTheirSegmentAndVideosStayTheSame() throws {
    let events = [
      Self.event(100, "down", "10.5", "20"), Self.event(150, "move", "11", "21"), Self.event(5_000, "up", "12", "22"),
      Self.event(90_000, "down", "1", "1"), Self.event(200, "move", "NaN", "1"),
    ]
    let plain = try encode(batch("plain"), to: "one")
    let touched = try encode(batch("touched", Self.events(events)), to: "two")
    #expect(touched.manifests.count == 2)
    #expect(
      touched.manifests.map(Self.touches) == [
        #"{"events":[[100,"down",0,10.5,20],[150,"move",0,11,21]],"height":320,"width":180}"#,
        #"{"events":[[0,"up",0,12,22]],"height":320,"width":180}"#,
      ])
    #expect(touched.printed.contains("1 pointer event is left out: events[4]: x and y are not two numbers"))
    #expect(touched.printed.contains("1 pointer event is left out: no segment has their time"))
    for (one, two) in zip(plain.manifests, touched.manifests) {
      #expect(one["touches"] == nil && one["sha256"] == two["sha256"])
      #expect(one["batchDigest"] != two["batchDigest"])
      let same = ["touches", "batch", "batchDigest", "manifestSha256"]
      #expect(
        one.members.filter { !same.contains($0.key) } == two.members.filter { !same.contains($0.key) })
    }
    // The same batch again is recognised.
    #expect(try encode(scratch.path("touched"), to: "two").printed.contains("published before"))
    let inspected = try EncoderWorker.run("encode", "--dry-run", scratch.path("touched"))
    #expect(inspected.text.contains("4 pointer events"))
  }

  @Test func noCoordinateUnderAMaskIsInAnyFile() throws {
    let keyboard = #"[{"x":0,"y":200,"width":180,"height":120}]"#
    let typed = (0..<40).map {
      Self.event(2_000 + 20 * $0, $0 % 2 == 0 ? "down" : "up", "77.\(10 + $0)", "277.\(10 + $0)")
    }
    let events = [Self.event(100, "down", "33", "277.5"), Self.event(2_100, "down", "44", "44")] + typed
    let path = try batch(
      "typed", masks: [2: keyboard, 5: #"[{"x":1}]"#],
      Self.events(events + [Self.event(5_500, "down", "88", "8.5"), Self.event(6_500, "down", "99", "299")]))
    let manifests = try encode(path, to: "out").manifests
    #expect(
      manifests.map(Self.touches) == [
        #"{"events":[[100,"down",0,33,277.5],[100,"cancel",0,33,277.5],[2100,"down",0,44,44],[2100,"cancel",0,44,44]],"height":320,"width":180}"#,
        #"{"events":[[1500,"down",0,99,299]],"height":320,"width":180}"#,
      ])
    for case let file as String in try #require(FileManager.default.enumerator(atPath: scratch.path("out"))) {
      guard let bytes = try? Data(contentsOf: URL(fileURLWithPath: scratch.path("out/" + file))) else { continue }
      #expect(bytes.range(of: Data("277.1".utf8)) == nil && bytes.range(of: Data("77.1".utf8)) == nil, "\(file)")
    }
  }

  @Test func reencodedSessionKeepsTheTouches() throws {
    let path = try batch("touched", Self.events([Self.event(100, "down", "10.5", "20")]))
    let before = try encode(path, to: "one").manifests
    let result = try EncoderWorker.run(
      "reencode", scratch.path("one/s"), "--output", scratch.path("two"), "--max-side", "90", "--quality", "small")
    try #require(result.status == 0, "\(result.errors)")
    let after = try manifests(scratch.path("two"))
    #expect(after[0]["width"] != before[0]["width"])
    #expect(after.map(Self.touches) == before.map(Self.touches))
    #expect(Self.touches(after[0]) != nil)
  }

  @Test func verifyFindsTouchesOfAnotherShape() throws {
    let path = try batch("touched", Self.events([Self.event(100, "down", "10.5", "20")]))
    var manifest = try encode(path, to: "out").manifests[0]
    let touches = #"{"width":180,"height":320,"events":[[9000,"down",0,1,2]]}"#
    manifest["touches"] = try JSONParser.parse(Array(touches.utf8))
    try manifest.write(to: scratch.path("out/s/segment-\(Self.start).json"))
    let result = try Tool.run(EncoderWorker.path, ["verify", scratch.path("out/s")], verifying: false)
    #expect(result.status == 65)
    #expect((result.text + result.errors).contains("touches: event 0 is not [milliseconds, kind, pointer, x, y]"))
  }

  @Test func touchesOfSentryAndroidAreInTheManifest() throws {
    let name = "replay_0123456789abcdef0123456789abcdef"
    let source = Fixture("formats/sentry-android/" + name).path
    try FileManager.default.copyItem(atPath: source, toPath: scratch.path(name))
    let file = URL(fileURLWithPath: scratch.path(name + "/.ongoing_segment"))
    let recording =
      #"{}[{"type":3,"timestamp":\#(Self.start + 500),"data":{"source":2,"type":7,"id":0,"x":31.2979,"y":62.5,"pointerType":2,"#
      + #""pointerId":0}},{"type":3,"timestamp":\#(Self.start + 900),"data":{"source":6,"positions":[{"id":0,"x":32,"y":63,"#
      + #""timeOffset":-100}],"pointerId":0}}]"#
    let text = try String(contentsOf: file, encoding: .utf8) + "\nreplay.recording=\(recording)"
    try text.write(to: file, atomically: false, encoding: .utf8)
    let manifest = try encode(scratch.path(name), to: "out").manifests[0]
    let size = (manifest["width"]?.integer ?? 0, manifest["height"]?.integer ?? 0)
    #expect(
      Self.touches(manifest)
        == #"{"events":[[500,"down",0,31.3,62.5],[800,"move",0,32,63]],"height":\#(size.1),"width":\#(size.0)}"#)
    #expect(try !#require(manifest["metadata"]).line.contains("recording"))
  }

  @Test func recordingWithoutTouchesIsNotTouched() throws {
    for fixture in ["exact-1fps", "masks", "formats/posthog-requests/ios.json.gz"] {
      for manifest in try encode(Fixture(fixture).path, to: "out-\(fixture.count)").manifests {
        #expect(manifest["touches"] == nil)
      }
    }
  }
}
