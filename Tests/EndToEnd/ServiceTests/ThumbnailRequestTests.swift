import Foundation
import TestSupport
import Testing

/// `thumbnail.jpg` of a session, which the list shows on the session's card.
@Suite struct ThumbnailRequestTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// A card costs the same at any length of the session, also after a change of the session.
  @Test func thumbnailReadsTheFirstSegmentOnly() throws {
    let session = try LongSession.make(of: 200, in: scratch, output: "long")
    let log = scratch.path("log")
    let server = try RunningServer(["serve", scratch.path("long"), "--sandbox", "off"], openedTo: log)
    let first = try server.get("/sessions/exact-1fps/thumbnail.jpg")
    #expect(first.status == 200 && first.headers["content-type"] == "image/jpeg")
    try Data("{}".utf8).write(to: URL(fileURLWithPath: session + "/session.json"))
    #expect(try server.get("/sessions/exact-1fps/thumbnail.jpg").body == first.body)
    let opened = try String(contentsOfFile: log, encoding: .utf8).components(separatedBy: "\n")
    let segment = "segment-\(LongSession.startMs)"
    #expect(opened.count { $0.contains(".mp4\"") } == 1 && opened.count { $0.contains(segment + ".mp4\"") } == 1)
    let manifests = opened.filter { $0.firstMatch(of: /segment-\d+\.json"/) != nil }
    #expect(manifests.count == 2 && manifests.allSatisfy { $0.contains(segment) }, "\(manifests.count)")
  }

  @Test func unchangedThumbnailOfAGrowingSessionIsNotSentAgain() throws {
    let spool = try TestSpool()
    try spool.addSmall("day@2", startMs: 1_767_859_514_340)
    try spool.drain()
    let server = try RunningServer(["serve", spool.output])
    let path = "/sessions/day/thumbnail.jpg"
    let first = try server.get(path)
    let tag = try #require(first.headers["etag"])
    try spool.addSmall("day@3", startMs: 1_767_859_516_340)
    try spool.drain()
    let again = try server.get(path, ["If-None-Match": tag])
    #expect(again.status == 304 && again.body.isEmpty && again.headers["etag"] == tag)
    // An earlier segment has another first picture.
    try spool.addSmall("day@1", startMs: 1_767_859_512_340, frames: [5, 6])
    try spool.drain()
    let earlier = try server.get(path, ["If-None-Match": tag])
    #expect(earlier.status == 200 && earlier.body != first.body)
    #expect(try server.get("/sessions/nobody/thumbnail.jpg").status == 404)
  }

  @Test func damagedFirstSegmentHasNoThumbnail() throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    let server = try RunningServer(["serve", scratch.path("output")])
    try FileManager.default.removeItem(atPath: session.video(session.manifests[0]))
    let reply = try server.get("/sessions/gap/thumbnail.jpg")
    #expect(reply.status == 422 && reply.text.contains(session.manifests[0].file), "\(reply.text)")
  }

  /// The list shows the last picture, and previews show the one at an instant.
  @Test func thumbnailAtAnInstantIsThePictureOnScreen() throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    let server = try RunningServer(["serve", scratch.path("output")])
    let path = "/sessions/gap/thumbnail.jpg"
    var numbers: [Int] = []
    // Captures are at 0, 1, 2, 14 and 15 seconds.
    for (number, at) in ["+0s", "+1.5s", "+6.9s", "+14.5s", "last"].enumerated() {
      let reply = try server.get(path + "?t=" + at)
      #expect(reply.status == 200 && reply.headers["content-type"] == "image/jpeg", "\(at): \(reply.text)")
      let file = try scratch.file("\(number).jpg", Array(reply.body))
      numbers.append(try Pixels.decode([(path: file, width: 180, height: 320)])[0][0].number)
      let tag = try #require(reply.headers["etag"])
      #expect(try server.get(path + "?t=" + at, ["If-None-Match": tag]).status == 304)
    }
    #expect(numbers == [0, 1, 2, 3, 4])
    #expect(try server.get(path).body == server.get(path + "?t=\(session.index.startMs)").body)
    let gap = try server.get(path + "?t=+10s")
    #expect(gap.status == 404 && gap.text.contains("\"gap\":{"), "\(gap.text)")
    for text in ["", "first", "last2", "-1"] {
      #expect(try server.get(path + "?t=" + text).status == 400, "\(text)")
    }
    #expect(try server.get("/sessions/nobody/thumbnail.jpg?t=last").status == 404)
  }

  @Test func lastPictureReadsTheLastSegmentOnlyAndFollowsTheSession() throws {
    _ = try LongSession.make(of: 200, in: scratch, output: "long")
    let log = scratch.path("log")
    let server = try RunningServer(["serve", scratch.path("long"), "--sandbox", "off"], openedTo: log)
    #expect(try server.get("/sessions/exact-1fps/thumbnail.jpg?t=last").status == 200)
    let opened = try String(contentsOfFile: log, encoding: .utf8).components(separatedBy: "\n")
    let segment = "segment-\(LongSession.startMs + 199 * 5_000)"
    let files = opened.filter { $0.firstMatch(of: /segment-\d+\.(json|mp4)"/) != nil }
    #expect(files.count == 2 && files.allSatisfy { $0.contains(segment) }, "\(files)")

    let spool = try TestSpool()
    try spool.addSmall("day@1", startMs: 1_767_859_512_340)
    try spool.drain()
    let viewer = try RunningServer(["serve", spool.output])
    let first = try viewer.get("/sessions/day/thumbnail.jpg?t=last")
    try spool.addSmall("day@2", startMs: 1_767_859_514_340, frames: [5, 6])
    try spool.drain()
    let tag = try #require(first.headers["etag"])
    let later = try viewer.get("/sessions/day/thumbnail.jpg?t=last", ["If-None-Match": tag])
    #expect(later.status == 200 && later.body != first.body)
  }
}
