import Foundation
import TestSupport
import Testing

/// The suppression of ThreadSanitizer names the closures that mutexes run. Another compiler may name them otherwise.
@Suite struct SuppressionTests {
  @Test func suppressionNamesTheClosuresOfMutexes() throws {
    let list = Fixture.root.appendingPathComponent("Tests/sanitizers/tsan.supp")
    let entries = try String(contentsOf: list, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("#") }
    #expect(entries == ["race:zYu*XEfU"])
    let names = String(
      decoding: try Tool.output("grep", ["-a", "-o", "[A-Za-z0-9_$]*zYu[A-Za-z0-9]*XEfU", EncoderWorker.path]),
      as: UTF8.self
    ).split(separator: "\n")
    #expect(Set(names).count >= 10, "\(names)")
    #expect(names.contains { $0.contains("DecoderForkServerC") })
  }
}
