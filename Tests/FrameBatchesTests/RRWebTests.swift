import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// Screenshots in rrweb events: several images on a screen, and several sessions.
@Suite struct RRWebTests {
  static let start: Int64 = 1_767_859_512_340
  /// A PNG with a single pixel.
  static let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

  static func snapshot(_ second: Int64, image: String = pixel, id: Int = 1, type: String = "screenshot") -> String {
    #"""
    {"type":2,"timestamp":\#(start + 1_000 * second),"data":{"wireframes":[{"id":\#(id),"x":0,"y":0,"width":1,"height":1,\#
    "type":"\#(type)","base64":"\#(image)"}]}}
    """#.replacingOccurrences(of: "\n", with: "")
  }

  static func request(_ session: String?, _ events: [String]) -> String {
    let id = session.map { #""$session_id":"\#($0)","# } ?? ""
    return #"{"event":"$snapshot","properties":{\#(id)"$snapshot_data":[\#(events.joined(separator: ","))]}}"#
  }

  static func read(_ text: String, limits: Limits = Limits()) throws -> BatchSessions? {
    try read(Array(text.utf8), limits: limits)
  }

  static func read(_ bytes: [UInt8], limits: Limits = Limits()) throws -> BatchSessions? {
    let source = BatchSource(name: "b", contents: StreamContents(.memory(bytes)), session: "b")
    return try BatchSessions(source, as: RRWebFormat.self, name: "b", limits: limits)
  }

  static func batch(_ text: String, limits: Limits = Limits()) throws -> Batch {
    let sessions = try #require(try read(text, limits: limits))
    #expect(sessions.readers.count == 1)
    return sessions.readers[0].batch
  }

  static func seconds(of batch: Batch) -> [Int64] { batch.frames.map { ($0.timeMs - start) / 1_000 } }

  /// Returns an event with an image on a canvas.
  static func drawing(_ id: Int, _ second: Int64, _ command: String = "clearRect") -> String {
    #"{"type":3,"timestamp":\#(start + 1_000 * second),"data":{"source":9,"id":\#(id),"commands":[{"property":"#
      + #""\#(command)","args":[0,0,1,1]},{"property":"drawImage","args":[{"rr_type":"ImageBitmap","args":[{"data":[{"base64":"#
      + #""\#(pixel)"}]}]},0,0]}]}}"#
  }

  // MARK: - PostHog's blocks

  /// As PostHog's store keeps them: a block a line. Several of a session are several gzip members.
  @Test func blocksOfAWindowAreOneSession() throws {
    let blocks = [0, 2, 4].map { (second: Int64) in
      #"{"window_id":"w1","data":[\#(Self.snapshot(second)),\#(Self.snapshot(second + 1, id: 1))]}"# + "\n"
    }
    let batch = try Self.batch(blocks.joined())
    #expect(Self.seconds(of: batch) == [0, 1, 2, 3, 4, 5] && batch.refused.isEmpty)
    let scratch = try ScratchDirectory()
    var members: [UInt8] = []
    for block in blocks {
      let path = try scratch.file("block", Array(block.utf8))
      members += Array(try Tool.output("gzip", ["-c", path]))
    }
    let file = try BatchReader(reading: scratch.file("session.jsonl.gz", members))
    #expect(file.batch.frames.map(\.timeMs) == batch.frames.map(\.timeMs))
  }

  // MARK: - Several images

  /// 15 tiles on a page with padding, and dialogs on a window in points. The encoded picture equals the true picture.
  @Test(arguments: ["tiles", "windows"])
  func composedPicturesEqualTheTruePicturesPixelForPixel(name: String) throws {
    let reader = try BatchReader(reading: Fixture("formats/rrweb-composed/\(name).json").path)
    FFmpegLog.silence()
    let decoder = PictureDecoder(limits: Limits())
    let image = FrameComposition(content: .image(nil), masks: .none)
    #expect(reader.batch.frames.count == (name == "tiles" ? 19 : 7))
    #expect(reader.batch.refused.isEmpty)
    for frame in reader.batch.frames {
      let files = try reader.images(of: frame).map { contents in
        guard case .bytes(let bytes) = contents else { throw Tool.Failure("\(contents)") }
        return bytes
      }
      let truth = try Fixture("formats/rrweb-composed").bytes("\(name)-\(frame.timeMs).png")
      let shown = try decoder.picture(from: files, frame.look).picture
      #expect(try shown.looksLike(decoder.picture(from: [truth], image).picture), "\(frame.timeMs)")
    }
    #expect(reader.batch.frames.map(\.paths.count).max() == (name == "tiles" ? 16 : 2))
  }

  @Test func partOfAPictureThatIsNotInTheBatchIsRefused() throws {
    let part =
      #"{"type":3,"timestamp":\#(Self.start),"data":{"source":0,"adds":[{"parentId":2,"node":{"tagName":"img","id":5,"#
      + #""attributes":{"src":"data:image/png;base64,\#(Self.pixel)","width":"1","height":"1"}}}]}}"#
    let batch = try Self.batch("[\(part),\(Self.snapshot(1))]")
    #expect(Self.seconds(of: batch) == [1])
    #expect(
      batch.refused == [
        RefusedFrame(source: "b#0", reason: "a part of a picture; the picture below it is not in the batch")
      ])
  }

  @Test func laterRequestOfMixpanelNeedsNoSnapshot() throws {
    let change =
      #"{"type":3,"timestamp":\#(Self.start),"data":{"source":0,"attributes":[{"id":28,"attributes":{"src":"\#(Self.pixel)"}}]}}"#
    #expect(try Self.batch("[\(change)]").frames.count == 1)
  }

  @Test func wireframesThatAreNoScreenshotsAreRefusedWithTheirType() throws {
    let batch = try Self.batch("[\(Self.snapshot(0)),\(Self.snapshot(1, type: "text"))]")
    #expect(Self.seconds(of: batch) == [0])
    #expect(batch.refused.map(\.reason) == ["a wireframe of type text is no screenshot"])
    let error = #expect(throws: BadBatch.self) {
      try Self.read(#"[{"type":4,"timestamp":1,"data":{"href":""}},{"type":3,"timestamp":2,"data":{"source":2}}]"#)
    }
    #expect(error?.cause == "rrweb events without a screenshot")
  }

  // MARK: - Sessions

  @Test func sessionOfRequestsIsFoundAtEachPositionOfItsName() throws {
    let late = #"{"properties":{"$snapshot_data":\#(Self.snapshot(3)),"$session_id":"two"}}"#
    let lines = [
      Self.request("one", [Self.snapshot(0), Self.snapshot(1)]), Self.request("two", [Self.snapshot(2)]), late,
      Self.request("-/bad", [Self.snapshot(4)]), Self.request(nil, [Self.snapshot(5)]),
    ]
    for text in [lines.joined(separator: "\n"), "[\(lines.joined(separator: ","))]"] {
      let sessions = try #require(try Self.read(text))
      #expect(sessions.readers.map(\.batch.session.description) == ["one", "two", "b"])
      #expect(sessions.readers.map { Self.seconds(of: $0.batch) } == [[0, 1], [2, 3], [5]])
      #expect(sessions.refused.map(\.session) == ["-/bad"])
      #expect(sessions.readers.allSatisfy { $0.batch.capture == .onChange })
    }
  }

  @Test func eachCanvasIsASession() throws {
    let text = [Self.drawing(7, 0), Self.drawing(9, 1), Self.drawing(7, 2), Self.drawing(7, 3, "fillRect")].joined(
      separator: ",")
    let sessions = try #require(try Self.read("[\(text)]"))
    #expect(sessions.readers.map(\.batch.session.description) == ["b.canvas7", "b.canvas9"])
    #expect(sessions.readers.map { Self.seconds(of: $0.batch) } == [[0, 2], [1]])
    let named = try #require(try Self.read(Self.request("s", [Self.drawing(7, 0)])))
    #expect(named.readers.map(\.batch.session.description) == ["s.canvas7"])
    let pairs = try Self.batch("[\"w1\",\(Self.drawing(7, 0))]\n[\"w2\",\(Self.drawing(7, 1))]")
    #expect(Self.seconds(of: pairs) == [0])
  }
}
