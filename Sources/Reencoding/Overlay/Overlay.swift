// The overlay that `reencode` draws into the pictures of a session.

import Encoding
import FileSystem
import FrameBatches
import JSON

package struct Overlay: Sendable, Equatable {
  /// In the order of their declaration, each once; at least one.
  package let parts: [OverlayPart]
  /// The zone of the clock; nil for the zone that a segment's batch states, else UTC.
  package let timeZone: ZoneRules?

  /// - Returns: nil for no parts.
  package init?(_ parts: [OverlayPart], timeZone: ZoneRules? = nil) {
    guard !parts.isEmpty else { return nil }
    self.parts = OverlayPart.allCases.filter(parts.contains)
    self.timeZone = timeZone
  }

  /// Returns the zone of a segment's clock.
  ///
  /// - Throws: ``BadSession`` if this system does not know it.
  func zone(of manifest: JSONValue?) throws -> ZoneRules {
    guard parts.contains(.clock) else { return .utc }
    guard timeZone == nil, let name = manifest?.object?["timeZone"]?.string else { return timeZone ?? .utc }
    guard let zone = try ZoneRules(named: name) else {
      throw BadSession(
        manifest?.object?["file"]?.string ?? "", "this system has no time zone '\(name.shortened(to: 64))'",
        advice: "give --overlay-time-zone, or install tzdata")
    }
    return zone
  }

  /// Returns the member of `encoder` in a segment's manifest: the parts that its pictures have room for; nil for none.
  func json(of manifest: JSONValue, in session: SessionID) throws -> JSONValue? {
    guard let width = manifest.object?["width"]?.integer, let height = manifest.object?["height"]?.integer,
      let startMs = manifest.object?["startMs"]?.integer, let size = PixelSize(width, height)
    else { return nil }
    let zone = try zone(of: manifest)
    let texts = OverlayTexts(
      clock: parts.contains(.clock) ? OverlayClock.forms(of: startMs, in: zone) : [],
      name: parts.contains(.name) ? session.description : nil, events: parts.contains(.events) ? "events" : nil,
      caption: parts.contains(.caption) ? "caption" : nil)
    let omitted = OverlayLayout(texts, in: size).omitted
    let drawn = parts.filter { !omitted.contains($0) }
    if drawn.isEmpty { return nil }
    var members: [String: JSONValue] = ["parts": .array(drawn.map { .string($0.rawValue) })]
    if drawn.contains(.clock) { members["timeZone"] = .string(zone.description) }
    return .object(members)
  }

  /// Returns a sentence for each size of pictures without room for a part.
  ///
  /// - Parameter segments: all with this overlay.
  func omissions(in segments: [PublishedSegment]) -> [String] {
    let bare = segments.compactMap { segment -> String? in
      let drawn = segment.overlayParts
      let missing = parts.map(\.rawValue).filter { !drawn.contains($0) }
      return missing.isEmpty
        ? nil
        : "pictures of \(segment.width)×\(segment.height) pixels have no room for: \(missing.joined(separator: ", "))"
    }
    return Dictionary(grouping: bare) { $0 }.sorted { $0.key < $1.key }.map { sentence, all in
      "\(sentence) (\(all.count) segment\(all.count == 1 ? "" : "s"))"
    }
  }
}

extension PixelSize {
  /// - Returns: nil for a size that no picture has.
  fileprivate init?(_ width: Int64, _ height: Int64) {
    guard (1...1 << 14).contains(width), (1...1 << 14).contains(height) else { return nil }
    self.init(width: Int(width), height: Int(height))
  }
}
