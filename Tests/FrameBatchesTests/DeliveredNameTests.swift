import FileSystem
import Foundation
import TestSupport
import Testing

@testable import FrameBatches

/// The name of a batch that came over HTTP has its producer and the correction of the device's clock.
@Suite struct DeliveredNameTests {
  @Test(arguments: ["kiosk-7", "a~b", "a/b", "", "ümlaut", String(repeating: "long", count: 20)])
  func nameIsReadAsItWasWritten(producer: String) {
    for (offsetMs, name) in [(Int64(0), "a.tar"), (-5, "~x~9~b.tar"), (3_600_000, "film@1767859512340~1.tar")] {
      let written = DeliveredName(name, of: producer, clockOffsetMs: offsetMs)
      let read = DeliveredName(reading: written.text)
      #expect(read.name == name && read.clockOffsetMs == offsetMs && written.text.utf8.count < name.utf8.count + 45)
      #expect(read.producer == (producer.isEmpty ? nil : written.producer))
    }
  }

  @Test func producersOfLikeNamesAreTold() {
    let producers = ["a", "a~", "a%7E", "A", "", String(repeating: "x", count: 99), String(repeating: "x", count: 98)]
    #expect(Set(producers.map { DeliveredName("n", of: $0).text }).count == producers.count)
  }

  @Test func otherNamesStayAsTheyAre() {
    for name in ["a.tar", "a~b~c~d", "film@1767859512340~1~2.tar"] {
      #expect(DeliveredName(name, of: nil).text == name && DeliveredName(reading: name).name == name)
    }
    for name in ["~", "~a", "~a~b", "~a~~", "~a~x~b", "~a b~~c", "~~+5~c", "~~99999999999999999~c"] {
      let read = DeliveredName(reading: name)
      #expect(read.name == name && read.producer == nil && read.clockOffsetMs == 0)
      // A producer without a token may choose such a name, too.
      #expect(DeliveredName(reading: DeliveredName(name, of: nil).text).name == name)
    }
  }

  @Test func batchHasTheSessionOfItsOwnNameAndCorrectedInstants() throws {
    let scratch = try ScratchDirectory()
    let picture = try Fixture("exact-1fps").bytes("0000.jpg")
    let tar = try Archive.tar([("1767859512340.jpg", picture), ("1767859513340.jpg", picture)])
    for (text, session) in [
      ("~kiosk-7~-86400000~front.tar", "front"), ("~~-86400000~front@17.tar.gz", "front"),
    ] {
      let batch = try BatchReader(reading: scratch.file(text, tar)).batch
      #expect(batch.session.description == session && batch.clockOffsetMs == -86_400_000)
      #expect(batch.frames.map(\.timeMs) == [1_767_773_112_340, 1_767_773_113_340])
      #expect(batch.endMs == 1_767_773_114_340)
      #expect(InputOptions().session(ofBatchNamed: text)?.description == session)
    }
  }

  /// All that has a time moves, and a stated correction counts, too.
  @Test func endPointersPagesAndStatedCorrectionMove() throws {
    let scratch = try ScratchDirectory()
    let text = """
      {"version": 1, "session": "s", "endMs": 1767859519340, "clockOffsetMs": 7, "frames": [
        {"file": "0.jpg", "timeMs": 1767859512340}],
       "events": [{"timeMs": 1767859512400, "type": "down", "x": 1, "y": 2}]}
      """
    let tar = try Archive.tar([
      ("0.jpg", try Fixture("exact-1fps").bytes("0000.jpg")), ("batch.json", Array(text.utf8)),
    ])
    let plain = try BatchReader(reading: scratch.file("a.tar", tar)).batch
    let moved = try BatchReader(reading: scratch.file("~~1000~a.tar", tar)).batch
    #expect(moved.endMs == plain.endMs + 1_000 && moved.clockOffsetMs == 1_007 && plain.clockOffsetMs == 7)
    #expect(moved.pointers.events.map(\.timeMs) == plain.pointers.events.map { $0.timeMs + 1_000 })
    #expect(!plain.pointers.events.isEmpty)
  }
}
