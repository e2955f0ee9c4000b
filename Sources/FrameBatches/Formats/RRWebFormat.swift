// PostHog, Mixpanel and LaunchDarkly: screenshots in rrweb events, and pictures of canvases. The text is one of
// - an array or lines of events, or of [window, event];
// - PostHog's export: {"data":{"snapshots":[event…]}}, or "snapshotsByWindowId":{window:[event…]};
// - PostHog's blocks in its store: {"window_id":…,"data":[event…]}, lines;
// - PostHog's requests: {"event":"$snapshot","properties":{"$session_id":…,"$snapshot_data":[event…] or event}}, an array or lines.
// The player sorts events by their instants first.

import JSON

package enum RRWebFormat: BatchFormat {
  package static let name = "rrweb screenshots"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard let text = source.contents.text else { return nil }
    var reader = RRWebReader(name: source.name, limits: limits)
    try RecordScanner.scan(text, limits: limits) { piece in try reader.take(piece) }
    guard reader.isRecording else { return nil }
    var player = RRWebPlayer(text: text, limits: limits)
    let drafts = try player.drafts(of: reader)
    guard !drafts.isEmpty else {
      let first = reader.refused.first.map { "; \($0.source): \($0.reason)" } ?? ""
      throw BadBatch(
        "read", source.name, "rrweb events without a screenshot" + first,
        advice: "record screenshots or canvases; a page's elements cannot be encoded")
    }
    return drafts
  }
}
