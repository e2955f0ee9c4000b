import Foundation
import TestSupport
import Testing

@testable import FrameBatches

/// The `traceparent` of a batch: W3C Trace Context, section 3.2.
@Suite struct TraceParentTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func batchPath(_ members: String) throws -> String {
    let name = "batch-\(UUID().uuidString)"
    let path = try scratch.directory(name)
    try scratch.file(name + "/1767859512340.jpg", Fixture("exact-1fps").bytes("0000.jpg"))
    try scratch.file(name + "/batch.json", Array(#"{"version":1,"session":"s"\#(members)}"#.utf8))
    return path
  }

  private func batch(_ members: String) throws -> BatchReader { try BatchReader(reading: batchPath(members)) }

  @Test(arguments: [
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "00-00000000000000000000000000000001-0000000000000001-00",
  ]) func valueIsCarried(text: String) throws {
    #expect(TraceParent(text)?.description == text)
    let read = try batch(#","traceparent":"\#(text)""#).batch
    #expect(read.traceParent?.description == text && read.warnings.isEmpty)
  }

  @Test(arguments: [
    "", "x", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
    "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
    "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
    "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-\r\n",
    "00-4bf92f3577b34da6a3ce929d0e0e47é-00f067aa0ba902b7-01",
  ]) func otherTextIsIgnoredWithAWarning(text: String) throws {
    #expect(TraceParent(text) == nil)
    let read = try batch(#","traceparent":"\#(text.replacing("\r\n", with: "\\r\\n"))""#).batch
    #expect(read.traceParent == nil)
    #expect(read.warnings.contains { $0.contains("traceparent is not one of W3C Trace Context") }, "\(read.warnings)")
  }

  @Test func numberIsIgnoredWithAWarningAndNullIsNone() throws {
    #expect(try batch(#","traceparent":7"#).batch.warnings.count == 1)
    let none = try batch(#","traceparent":null"#).batch
    #expect(none.traceParent == nil && none.warnings.isEmpty)
  }

  /// A step that the batch states itself comes before the one of its sender.
  @Test func sendersStepIsContinuedWhereTheBatchStatesNone() throws {
    let own = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    let sender = try #require(TraceParent(own.replacing("4bf9", with: "aaaa")))
    for (members, expected) in [("", sender.description), (#","traceparent":"\#(own)""#, own)] {
      var sessions = try BatchSessions(reading: batchPath(members))
      sessions.continueTrace(of: sender)
      #expect(sessions.readers.map { $0.batch.traceParent?.description } == [expected])
      let description = NativeFormat.description(of: sessions.readers[0].batch)
      #expect(String(decoding: description, as: UTF8.self).contains(expected))
    }
  }

  /// A producer that sends a batch again has another step of a trace, and the same batch.
  @Test func digestOfTheBatchDoesNotDependOnIt() throws {
    let digests = try [
      "", #","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01""#,
    ].map { try BatchDigest.of(batch($0)) }
    #expect(digests[0] == digests[1])
  }
}
