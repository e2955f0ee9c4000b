import JSON

/// A text that is drawn into the pictures of a session.
package enum OverlayPart: String, CaseIterable, Sendable {
  /// When the picture was captured.
  case clock
  /// The session's name.
  case name
  /// The pointer events while the picture is on screen, and the note on its frame.
  case events
  /// The labels of the moment: steps, captions and errors.
  case caption
}

/// The texts of one picture.
package struct OverlayTexts: Equatable {
  /// The forms of the clock, the longest first; empty for no clock.
  package var clock: [String] = []
  /// nil for no name.
  package var name: String?
  /// nil if nothing happens.
  package var events: String?
  /// nil for no caption.
  package var caption: String?

  package init(clock: [String] = [], name: String? = nil, events: String? = nil, caption: String? = nil) {
    (self.clock, self.name, self.events, self.caption) = (clock, name, events, caption)
  }
}

extension PublishedSegment {
  /// The overlay in its pictures, as in its manifest; nil for none.
  package var overlay: JSONValue? { encoder.object?["overlay"] }

  /// The names of the overlay's parts.
  package var overlayParts: [String] { overlay?.object?["parts"]?.array?.compactMap(\.string) ?? [] }

  /// Whether the overlay of a picture tells its instant, or what happened then.
  package var hasOverlayOfInstants: Bool { overlayParts.contains { $0 != OverlayPart.name.rawValue } }
}
