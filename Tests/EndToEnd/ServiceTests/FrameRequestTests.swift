import Foundation
import JSON
import TestSupport
import Testing

/// `frame.jpg` and `frame.png` of a session: the picture on screen at an instant.
@Suite struct FrameRequestTests {
  private let scratch: ScratchDirectory

  init() throws {
    scratch = try ScratchDirectory()
    _ = try scratch.directory("output")
  }

  private struct Bounds: Decodable, Equatable { let startMs, endMs: Int64 }
  private struct Refusal: Decodable {
    let error: String
    let atMs: Int64?
    let gap: Bounds?
    let bounds: Bounds?
  }

  private func refusal(_ reply: RunningServer.Reply) throws -> Refusal {
    try JSONDecoder().decode(Refusal.self, from: reply.body)
  }

  /// Compares each answer with what stock tools find in the stitched film.
  private func expectEveryInstant(of session: PublishedSession, from server: RunningServer) throws {
    let screen = try StitchedScreen(session, in: scratch)
    let name = session.index.session
    var shown: [(atMs: Int64, segment: Int, sample: Int, file: String)] = []
    for atMs in screen.instants {
      let reply = try server.get("/sessions/\(name)/frame.png?t=\(atMs)")
      switch screen.content(at: atMs) {
      case .picture(_, let segment, let sample):
        #expect(reply.status == 200 && reply.headers["content-type"] == "image/png", "\(name) \(atMs): \(reply.text)")
        shown.append((atMs, segment, sample, try scratch.file("\(atMs).png", Array(reply.body))))
      case .gap(let startMs, let endMs):
        #expect(reply.status == 404, "\(name) \(atMs)")
        #expect(try refusal(reply).gap == Bounds(startMs: startMs, endMs: endMs), "\(name) \(atMs)")
      case .outside:
        #expect(reply.status == 404, "\(name) \(atMs)")
        let bounds = Bounds(startMs: session.index.startMs, endMs: session.index.endMs)
        #expect(try refusal(reply).bounds == bounds, "\(name) \(atMs)")
      }
    }
    let files = shown.map { shot in
      let manifest = session.manifests[shot.segment]
      return (path: shot.file, width: manifest.width, height: manifest.height)
    }
    for (shot, decoded) in zip(shown, try Pixels.decode(files)) {
      let expected = screen.picture(shot.segment, shot.sample)
      #expect(decoded[0].number == expected.number, "\(name) \(shot.atMs)")
      #expect(decoded[0].difference(to: expected) < 1, "\(name) \(shot.atMs)")
    }
  }

  @Test(arguments: Fixture.all)
  func everyCaptureAndGapIsAnsweredToTheMillisecond(fixture: Fixture) throws {
    let session = try EncoderWorker.encode(fixture, into: scratch)
    try expectEveryInstant(of: session, from: try RunningServer(["serve", scratch.path("output")]))
  }

  @Test func cutHoldsAreGaps() throws {
    let session = try EncoderWorker.encode(Fixture("jittered"), into: scratch, "--max-hold", "900")
    #expect(!session.index.gaps.isEmpty)
    try expectEveryInstant(of: session, from: try RunningServer(["serve", scratch.path("output")]))
  }

  /// Sessions with early and late batches, gaps, and changes of size.
  @Test(arguments: Extent.of(1...3, full: 1...24))
  func seamsAreClosedAsInTheStitchedFilm(seed: Int) throws {
    let generated = try GeneratedSession(seed: seed, in: scratch)
    for batch in generated.batches {
      #expect(try EncoderWorker.run("encode", batch, "--output", scratch.path("output")).status == 0)
    }
    let session = try PublishedSession(scratch.path("output/" + generated.name))
    try expectEveryInstant(of: session, from: try RunningServer(["serve", scratch.path("output")]))
  }

  @Test func instantsAreReadInAllForms() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let server = try RunningServer(["serve", scratch.path("output")])
    let path = "/sessions/exact-1fps/frame.jpg?t="
    // 2026-01-08T08:05:14.340Z is two seconds after the start.
    let expected = try server.get(path + "\(session.index.startMs + 2_000)")
    #expect(expected.status == 200 && expected.headers["content-type"] == "image/jpeg")
    for text in [
      "+2s", "%2B2.000s", "2026-01-08T08:05:14.340Z", "2026-01-08T10:05:14.340%2B02:00",
      "2026-01-08T10:05:14.340+02:00", "1767859514%33%34%30",
    ] {
      let reply = try server.get(path + text)
      #expect(reply.status == 200 && reply.body == expected.body, "\(text)")
    }
    for text in [
      "", "now", "-1", "1e12", "99999999999999999999", "+", "+s", "+-1s", "1767859514340%00", "NaN", "+1.2345s",
      "2026-01-08T08:05:14", "%ff%fe", "17678595143%2040", String(repeating: "1", count: 2_000),
    ] {
      let reply = try server.get(path + text)
      #expect(reply.status == 400, "\(text): \(reply.status)")
    }
    #expect(try server.get("/sessions/exact-1fps/frame.jpg").status == 400)
    #expect(try refusal(server.get(path + "soon")).error.contains("unix milliseconds"))
    #expect(try server.get("/sessions/nobody/frame.jpg?t=1767859514340").status == 404)
    #expect(try server.get("/sessions/exact-1fps/frame.gif?t=1767859514340").status == 404)
    // The end is outside.
    let reply = try server.get(path + "\(session.index.endMs)")
    #expect(reply.status == 404)
    #expect(try refusal(reply).atMs == session.index.endMs)
    #expect(try server.get(path + "+9999999s").status == 404)
  }

  @Test func unchangedPictureIsNotSentAgain() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let server = try RunningServer(["serve", scratch.path("output")])
    let path = "/sessions/exact-1fps/frame.jpg?t="
    let first = try server.get(path + "\(session.index.startMs)")
    let tag = try #require(first.headers["etag"])
    // The same picture at a later instant.
    let again = try server.get(path + "\(session.index.startMs + 999)", ["If-None-Match": tag])
    #expect(again.status == 304 && again.body.isEmpty && again.headers["etag"] == tag)
    let next = try server.get(path + "\(session.index.startMs + 1_000)", ["If-None-Match": tag])
    #expect(next.status == 200 && next.headers["etag"] != tag && next.body != first.body)
    let head = try server.get(path + "\(session.index.startMs)", method: "HEAD")
    #expect(head.body.isEmpty && head.headers["content-length"] == "\(first.body.count)")
  }

  @Test func picturesOfAGrowingSessionFollowItsBatches() throws {
    let spool = try TestSpool()
    try spool.addSmall("day@1", startMs: 1_767_859_512_340)
    try spool.drain()
    let server = try RunningServer(["serve", spool.output])
    let path = "/sessions/day/frame.jpg?t="
    #expect(try server.get(path + "1767859514740").status == 404)
    try spool.addSmall("day@2", startMs: 1_767_859_514_640, frames: [2, 3])
    try spool.drain()
    let numbers = try ["1767859514339", "1767859514639", "1767859514640", "1767859514740"].map { instant in
      let file = try scratch.file(instant + ".jpg", Array(try server.get(path + instant).body))
      return try ImageProbe(file).pixels().number
    }
    // The seam of 300 ms holds the earlier picture.
    #expect(numbers == [1, 1, 2, 2])
  }

  @Test func damagedSegmentIsAnErrorAndItsNeighboursAreShown() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let server = try RunningServer(["serve", scratch.path("output")])
    let manifests = session.manifests
    func status(_ segment: Int) throws -> Int {
      try server.get("/sessions/exact-1fps/frame.png?t=\(manifests[segment].startMs + 1_500)").status
    }
    // Leaves the size and the container as they are.
    var video = try Data(contentsOf: URL(fileURLWithPath: session.video(manifests[1])))
    let original = video
    video[video.count - 2_000] ^= 1
    try video.write(to: URL(fileURLWithPath: session.video(manifests[1])))
    let reply = try server.get("/sessions/exact-1fps/frame.png?t=\(manifests[1].startMs)")
    #expect(reply.status == 422 && reply.text.contains(manifests[1].file), "\(reply.text)")
    #expect(try [status(0), status(2)] == [200, 200])
    try original.write(to: URL(fileURLWithPath: session.video(manifests[1])))
    #expect(try status(1) == 200)
    try Data("{}".utf8).write(to: URL(fileURLWithPath: session.path + "/segment-\(manifests[1].startMs).json"))
    #expect(try [status(0), status(1), status(2)] == [200, 422, 200])
    try FileManager.default.removeItem(atPath: session.video(manifests[2]))
    #expect(try status(2) == 422)
  }

  /// A forged manifest that agrees with its video by digest, but not by size or times, gives no picture.
  @Test func forgedManifestGivesNoPicture() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let server = try RunningServer(["serve", scratch.path("output")])
    let path = session.path + "/segment-\(session.manifests[0].startMs).json"
    let original = try SegmentManifestJSON(path)
    let frames = try original.frames
    func frame(_ index: Int, holdMs: Int) -> JSONValue { frames[index].setting(["holdMs": .number(holdMs)]) }
    let forgeries: [[String: JSONValue]] = [
      ["width": .number(16_384), "codedWidth": .number(16_384)], ["width": .number(4_000)],
      ["codedHeight": .number(100), "height": .number(100)],
      ["frames": .array(frames.indices.map { frame($0, holdMs: 900 + $0) })],
      ["frames": .array([frame(0, holdMs: 0), frame(1, holdMs: 777), frames[2]])],
    ]
    for forgery in forgeries {
      var manifest = original
      manifest.members.merge(forgery) { $1 }
      try manifest.write(to: path)
      let reply = try server.get("/sessions/exact-1fps/frame.jpg?t=\(session.index.startMs + 2_500)")
      #expect(reply.status == 422, "\(forgery.keys): \(reply.status)")
    }
  }

  // MARK: - Neighbours

  /// Returns the bytes that the decoders of the server have read: files come through their sockets.
  private func bytesRead(byDecodersOf server: RunningServer) throws -> Int {
    func children(of process: Int32) -> [Int32] {
      let threads = (try? names(in: "/proc/\(process)/task")) ?? []
      return threads.flatMap { thread in
        let list = try? String(contentsOfFile: "/proc/\(process)/task/\(thread)/children", encoding: .utf8)
        return (list ?? "").split(separator: " ").compactMap { Int32($0) }
      }
    }
    return children(of: server.processIdentifier).flatMap(children).reduce(0) { sum, decoder in
      let text = (try? String(contentsOfFile: "/proc/\(decoder)/io", encoding: .utf8)) ?? ""
      let line = text.split(separator: "\n").first { $0.hasPrefix("rchar: ") }
      return sum + (line.flatMap { Int($0.dropFirst(7)) } ?? 0)
    }
  }

  @Test func openDecoderGoesOnToLaterPicturesOfItsSegment() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let server = try RunningServer(["serve", scratch.path("output")])
    let segment = session.manifests[0]
    func read(_ frame: Int, of segment: PublishedSession.Manifest) throws -> Int {
      let before = try bytesRead(byDecodersOf: server)
      let reply = try server.get(
        "/sessions/exact-1fps/frame.png?t=\(segment.frames[frame].timeMs)", method: "HEAD")
      #expect(reply.status == 200)
      return try bytesRead(byDecodersOf: server) - before
    }
    // Starts the decoder.
    _ = try read(0, of: segment)
    #expect(try read(1, of: segment) < 2_000)
    #expect(try read(1, of: segment) < 2_000)
    #expect(try read(4, of: segment) < 2_000)
    // An earlier picture has to be decoded from the key frame, and another segment has to be read.
    #expect(try read(2, of: segment) > segment.bytes / 2)
    #expect(try read(3, of: segment) < 2_000)
    #expect(try read(0, of: session.manifests[1]) > session.manifests[1].bytes / 2)
  }

  /// Each answer equals the one to a single request.
  @Test func manyClientsGetTheRightPictures() throws {
    let fixtures = ["exact-1fps", "rotation", "odd-size", "gap"]
    let sessions = try fixtures.map { try EncoderWorker.encode(Fixture($0), into: scratch) }
    let paths = sessions.flatMap { session in
      session.captured.map { "/sessions/\(session.index.session)/frame.jpg?t=\($0.timeMs)" }
    }
    let single = try RunningServer(["serve", scratch.path("output"), "--sandbox", "off"])
    let expected = try Dictionary(uniqueKeysWithValues: paths.map { ($0, try single.get($0).body) })
    let server = try RunningServer(["serve", scratch.path("output")])
    let script = """
      import random, sys, threading, urllib.request, hashlib
      base, paths, lines = sys.argv[1], sys.argv[2:], []
      def client(seed):
          chance = random.Random(seed)
          for path in chance.sample(paths, len(paths)):
              body = urllib.request.urlopen(base + path, timeout=120).read()
              lines.append(path + " " + hashlib.sha256(body).hexdigest())
      threads = [threading.Thread(target=client, args=(seed,)) for seed in range(12)]
      for thread in threads: thread.start()
      for thread in threads: thread.join()
      print("\\n".join(lines))
      """
    let result = try Tool.run(Tool.python, ["-c", script, "http://127.0.0.1:\(server.port)"] + paths)
    let lines = result.text.split(separator: "\n")
    #expect(lines.count == 12 * paths.count, "\(result.errors)")
    let digests = try expected.mapValues { body in
      let file = try scratch.file("picture", Array(body))
      return String(decoding: try Tool.output("sha256sum", [file]), as: UTF8.self).prefix(64)
    }
    for line in Set(lines) {
      let parts = line.split(separator: " ")
      #expect(digests[String(parts[0])] == parts[1], "\(line)")
    }
  }
}
