import Foundation
import TestSupport
import Testing

/// The suppression of ThreadSanitizer names the closures that mutexes run. Another compiler may name them otherwise.
@Suite struct SuppressionTests {
  @Test func suppressionNamesTheClosuresOfMutexes() throws {
    let list = Fixture.root.appendingPathComponent("Tests/sanitizers/tsan.supp")
    let entries = try String(contentsOf: list, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("#") }
    #expect(entries == ["race:zYu*XEfU", "race:tz_t*YTXEfU"])
    func names(_ pattern: String) throws -> Set<Substring> {
      let names = try Tool.output("grep", ["-a", "-o", "[A-Za-z0-9_$]*" + pattern, EncoderWorker.path])
      return Set(String(decoding: names, as: UTF8.self).split(separator: "\n"))
    }
    let (ofValues, ofTuples) = (try names("zYu[A-Za-z0-9]*XEfU"), try names("tz_t[A-Za-z0-9]*YTXEfU"))
    #expect(ofValues.count >= 10 && ofValues.contains { $0.contains("DecoderForkServerC") }, "\(ofValues)")
    #expect(ofTuples.contains { $0.contains("RequestMeterC") }, "\(ofTuples)")
  }
}
