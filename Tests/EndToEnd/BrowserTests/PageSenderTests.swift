import Foundation
import TestSupport
import Testing

/// The page of examples/ingest in Chromium: from its canvas to a session of a worker on another origin.
@Suite struct PageSenderTests {
  private let spool: TestSpool
  private let browser: Browser
  private let tokens: String
  private let scratch: ScratchDirectory

  init() throws {
    spool = try TestSpool()
    scratch = try ScratchDirectory()
    browser = try Browser(serving: scratch.path)
    let page = "send-pictures.html"
    try FileManager.default.copyItem(
      at: Fixture.root.appendingPathComponent("examples/ingest/" + page), to: scratch.url.appendingPathComponent(page))
    tokens = spool.scratch.path("tokens")
    try Data("page 0123456789abcdef web-\n".utf8).write(to: URL(fileURLWithPath: tokens))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: tokens)
  }

  /// Opens the page, ends the session after some pictures, and returns what the page says at the end.
  private func drive(_ port: UInt16, session: String, token: String = "0123456789abcdef") throws -> String {
    try browser.run(
      """
      const frame = document.createElement('iframe');
      frame.src = `/send-pictures.html?${new URLSearchParams(parameters)}`;
      document.documentElement.append(frame);
      const said = () => frame.contentDocument?.querySelector('output')?.textContent ?? '';
      for (;;) {
        await new Promise(resolve => setTimeout(resolve, 20));
        if (said().startsWith('refused') || said().startsWith('ended')) return said();
        if (/^[5-9] /.test(said())) frame.contentDocument.querySelector('button').click();
      }
      """,
      parameters: ["to": "http://127.0.0.1:\(port)", "session": session, "token": token, "every": "200"])
  }

  @Test func pageSendsItsPicturesAndEndsTheSession() throws {
    let ingest = try RunningIngest([
      "--spool", spool.path, "--ingest-tokens", tokens, "--ingest-origin", browser.origin,
    ])
    let said = try drive(ingest.port, session: "web-1")
    let sent = try #require(Int(said.filter(\.isNumber)), "\(said)")
    #expect(said.hasPrefix("ended with") && sent >= 5)
    try spool.waitUntil("the session is complete") {
      (try? String(contentsOfFile: spool.output + "/web-1/session.json", encoding: .utf8))?
        .contains(#""complete":true"#) ?? false
    }
    #expect(try PublishedSession(spool.output + "/web-1").captured.count == sent)
    #expect(try spool.names("quarantine").isEmpty)
    // The page can read the refusals, too.
    #expect(try drive(ingest.port, session: "other").contains("page may not write to the session other"))
    #expect(try drive(ingest.port, session: "web-2", token: "another-token-0123").contains("the token is not known"))
    #expect(ingest.stop() == 0)
  }
}
