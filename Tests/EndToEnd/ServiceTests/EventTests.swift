import Foundation
import TestSupport
import Testing

/// Events of batches: their lines on standard output, receivers and secrets that are refused, and events that a receiver
/// refuses.
@Suite struct EventTests {
  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  @Test func eachBatchHasALineThatAgreesWithItsManifests() throws {
    let schema = try JSONSchema("docs/event.schema.json")
    for name in ["exact-1fps", "gap", "corrupt-frames", "masks"] { try spool.add(name) }
    try spool.add(file: "bad\u{2028}\n", [1, 2, 3])
    let first = try spool.drain("--json")
    #expect(first.status == 65)
    try spool.add("gap")
    let second = try spool.drain("--json")
    #expect(second.status == 0)
    for line in (first.text + second.text).split(separator: "\n") {
      #expect(try schema.faults(of: line) == [], "\(line)")
    }
    let all = try first.jsonLines(as: BatchEventJSON.self)
    #expect(all.filter { $0.event == "session.ended" }.count == 1)
    let events = all.filter { $0.event != "session.ended" }
    #expect(events.count == 5)
    for event in events where event.event == "batch.published" {
      let session = try #require(event.sessions.first)
      let published = try PublishedSession(spool.output + "/" + session.session)
      #expect(session.segments.map(\.file) == published.manifests.map(\.file))
      #expect(session.segments.map(\.sha256) == published.manifests.map(\.sha256))
      #expect(session.segments.map(\.durationMs) == published.manifests.map(\.durationMs))
      #expect(session.frames == published.captured.count && !session.duplicate)
      let gaps = session.gaps.map { $0.endMs - $0.startMs }
      #expect(gaps == published.manifests.map(\.gapAfterMs).filter { $0 > 0 })
      #expect(event.durationsMs?["took"] != nil && event.durationsMs?["notify"] == nil)
      if session.session == "corrupt-frames" { #expect(session.refusedCount == 3) }
    }
    let bad = try #require(events.first { $0.event == "batch.quarantined" })
    #expect(bad.batch == "bad\u{2028}\n" && bad.durationsMs == nil)
    #expect(bad.reason?.cause.contains("no known format") == true)
    let again = try #require(second.jsonLines(as: BatchEventJSON.self).first)
    #expect(again.event == "batch.duplicate")
    #expect(again.key == events.first { $0.batch == "gap" }?.key)
  }

  /// A validator that accepts everything would prove nothing.
  @Test func schemaRefusesOtherLines() throws {
    let schema = try JSONSchema("docs/event.schema.json")
    try spool.add("single-frame")
    let line = try spool.drain("--json").text
    for (old, new) in [
      ("batch-event/1", "batch-event/2"), ("\"key\":\"", "\"key\":\"x"), ("batch.published", "batch.quarantined"),
      ("\"frames\":1", "\"frames\":true"), ("\"frames\":1", "\"frames\":-1"),
      ("\"duplicate\":false", "\"duplicate\":0"),
      ("\"sha256\"", "\"sha1\""), ("\"timeMs\":", "\"when\":"), ("\"warnings\":[]", "\"warnings\":[1]"),
    ] {
      #expect(line.contains(old))
      #expect(try !schema.faults(of: line.replacing(old, with: new)).isEmpty, "\(new)")
    }
  }

  @Test func refusedEventIsKeptUntilItIsRetried() throws {
    let receiver = try ReceiverServer()
    receiver.answer(.init(status: 422, body: "no such tenant\nmore"))
    try spool.add("gap")
    try spool.add(file: "bad", [1, 2, 3])
    let result = try spool.drain("--notify", receiver.url)
    #expect(result.status == 65 && result.errors.contains("notification.refused"), "\(result.errors)")
    #expect(result.errors.contains("2 events were refused"))
    #expect(result.errors.contains("answered 422: no such tenant") && !result.errors.contains("hush"))
    #expect(try spool.isAtRest && spool.names("quarantine") == ["bad", "bad.reason.json"])
    let kept = try spool.names("notifications").map { String($0.dropLast(5)) }
    let sent = try receiver.log().filter { $0.status != 0 }
    #expect(try Set(kept) == Set(sent.map { try $0.event.key }) && kept.count == 2)
    func notify(_ words: String...) throws -> Tool.Result {
      try Tool.run(EncoderWorker.path, ["quarantine"] + words + ["--events", "--spool", spool.path])
    }
    let list = try notify("list", "--json")
    #expect(list.text.split(separator: "\n").count == 2 && list.text.contains("answered 422"))
    #expect(try notify("list").text.contains("batch.quarantined"))
    #expect(try notify("show", kept[0]).text.dropLast() == #require(sent.first { try $0.event.key == kept[0] }).body)
    let refused = try notify("retry", "--all", "--notify", receiver.url)
    #expect(refused.status == 65 && refused.errors.contains("422"), "\(refused.errors)")
    #expect(try spool.names("notifications").count == 2)
    receiver.answer()
    let retried = try notify("retry", kept[0], "--notify", receiver.url)
    #expect(retried.status == 0 && retried.text.contains(kept[0]), "\(retried.errors)")
    #expect(try receiver.accepted().map(\.body) == sent.filter { try $0.event.key == kept[0] }.map(\.body))
    #expect(try notify("purge", "--all", "--dry-run").status == 0)
    #expect(try spool.names("notifications") == [kept[1] + ".json"])
    #expect(try notify("purge", "--all").status == 0 && spool.names("notifications").isEmpty)
    #expect(try notify("show", kept[1]).status == 64)
    #expect(try notify("retry", "--all").status == 64)
    // The batches in quarantine are not concerned, nor are options of events without --events.
    #expect(try spool.names("quarantine") == ["bad", "bad.reason.json"])
    for words in [
      ["list", "--store", "s3://replay"], ["purge", "--all", "--store", "s3://replay"],
      ["retry", "--all", "--notify", receiver.url], ["retry", "--all", "--store", "s3://replay"],
      ["retry", "--all", "--events", "--accept", "--notify", receiver.url],
      ["list", "--events", "--store", "s3://replay"],
    ] {
      let result = try Tool.run(EncoderWorker.path, ["quarantine"] + words + ["--spool", spool.path])
      #expect(result.status == 64, "\(words): \(result.errors)")
    }
    #expect(try spool.names("quarantine") == ["bad", "bad.reason.json"])
    #expect(try notify("retry", "../incoming", "--notify", receiver.url).status == 64)
    receiver.kill()
    #expect(try notify("list").errors.contains("no refused events"))
  }

  @Test func redirectIsNotFollowed() throws {
    let (receiver, other) = (try ReceiverServer(), try ReceiverServer())
    receiver.answer(.init(status: 307, headers: ["Location": other.url]))
    try spool.add("single-frame")
    let result = try spool.drain("--notify", receiver.url)
    #expect(result.status == 0 && result.errors.contains("redirects are not followed"), "\(result.errors)")
    #expect(try other.log().isEmpty && spool.names("notifications").count == 1 && spool.isAtRest)
  }

  @Test func answerOfAnyLengthIsAccepted() throws {
    let receiver = try ReceiverServer()
    receiver.answer(.init(status: 200, bytes: 30_000_000))
    try spool.add("single-frame")
    #expect(try spool.drain("--notify", receiver.url).status == 0)
    #expect(try receiver.accepted().count == 1 && spool.isAtRest)
  }

  @Test func wrongReceiversAndSecretsAreRefusedAtTheStart() throws {
    let secret = try spool.scratch.file("secret", Array("hush".utf8))
    chmod(secret, 0o644)
    for words in [
      ["--notify", "ftp://h/"], ["--notify", "https://user:hush@h/"], ["--notify-secret-file", secret],
      ["--notify", "http://h/", "--notify-secret-file", secret], ["--notify", "http://h/", "--notify-pending", "0"],
      ["--notify", "http://h/", "--notify-timeout", "0"],
    ] {
      let result = try Tool.run(EncoderWorker.path, ["run", "--spool", spool.path, "--drain"] + words)
      #expect(result.status == 64 && !result.errors.contains("hush"), "\(words): \(result.errors)")
    }
  }

  @Test func settingsShowNoSecretOfTheAddress() throws {
    let result = try EncoderWorker.run("config", "run", "--spool", spool.path, "--notify", "https://h:8443/hush?hush")
    #expect(result.status == 0 && result.text.contains("https://h:8443 "), "\(result.errors)")
    #expect(!result.text.contains("hush"))
  }

  @Test func draftOfARefusedEventIsPrunedWhenItsWorkerIsDead() throws {
    let folder = try spool.scratch.directory("spool/notifications")
    let key = String(repeating: "a", count: 64)
    let host = ProcessInfo.processInfo.hostName
    for name in [
      ".\(host)~99999999~dead1.\(key).part", ".\(host)~1~live1.\(key).part", ".other~99999999~x.\(key).part",
    ] {
      try spool.scratch.file("spool/notifications/" + name, [1])
    }
    #expect(try EncoderWorker.run("prune", "--spool", spool.path).status == 0)
    #expect(try names(in: folder).map { $0.prefix(6) }.count == 2)
    #expect(try EncoderWorker.run("quarantine", "--events", "--spool", spool.path, "--json").text.isEmpty)
  }

  /// The receiver of docs/events.md checks the signature and drops repeated keys.
  @Test func documentedReceiverTakesEachEventOnce() throws {
    let page = try String(contentsOf: Fixture.root.appendingPathComponent("docs/events.md"), encoding: .utf8)
    let code = try #require(page.components(separatedBy: "```python\n").last?.components(separatedBy: "```").first)
    #expect(code.split(separator: "\n").count <= 15)
    let script = try spool.scratch.file("receiver.py", Array(code.utf8))
    let secret = try spool.scratch.file("secret", Array("a long secret\n".utf8))
    let other = try spool.scratch.file("other", Array("another secret\n".utf8))
    for file in [secret, other] { chmod(file, 0o600) }
    let port = UInt16.random(in: 10_000..<15_000)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [Tool.python, "-B", script, "\(port)", secret]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    defer {
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
    let url = "http://127.0.0.1:\(port)/"
    // The first attempts may be refused: the receiver starts.
    for _ in 0..<2 {
      try spool.add("gap")
      let result = try spool.drain("--notify", url, "--notify-secret-file", secret)
      #expect(result.status == 0, "\(result.errors)")
    }
    try spool.add("single-frame")
    #expect(try spool.drain("--notify", url, "--notify-secret-file", other).errors.contains("answered 401"))
    try spool.add("odd-size")
    #expect(try spool.drain("--notify", url, "--notify-secret-file", secret).status == 0)
    kill(process.processIdentifier, SIGKILL)
    let said = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    #expect(said == "batch.published gap\nbatch.published odd-size\n")
  }
}
