import Encoding
import FrameBatches
import JSON
import Sessions

/// The overlay in the pictures of one segment.
struct SegmentOverlay {
  private let overlay: Overlay
  private let session: SessionID
  private let zone: ZoneRules
  /// By the index of the hold; nil where nothing happens.
  private let events: [String?]
  /// In the order of their starts.
  private let captions: [Caption]
  /// Maximum number of captions in a picture: the latest ones.
  private static let mostCaptions = 3

  /// - Parameters:
  ///   - source: the segment that is encoded again, and its manifest; nil for a part of a film.
  ///   - captions: of the session, in the order of their starts.
  /// - Throws: ``BadSession``.
  init(
    _ overlay: Overlay, in session: SessionID, of source: (segment: PublishedSegment, manifest: JSONValue)?,
    captions: [Caption]
  ) throws {
    self.captions = captions
    self.overlay = overlay
    self.session = session
    zone = try overlay.zone(of: source?.manifest)
    do {
      events =
        try overlay.parts.contains(.events)
        ? source.map { try OverlayEvents.texts(of: $0.segment, $0.manifest) } ?? [] : []
    } catch let error as JSONError {
      throw BadSession(source?.segment.file ?? "", "its pointer events cannot be read: \(error)")
    }
  }

  /// Returns the picture of a hold with its texts. A hold that continues a picture shows the time of its capture.
  func drawn(on picture: Picture, of hold: FrameHold, index: Int) throws -> Picture {
    let texts = OverlayTexts(
      clock: overlay.parts.contains(.clock) ? OverlayClock.forms(of: hold.capture.timeMs, in: zone) : [],
      name: overlay.parts.contains(.name) ? session.description : nil,
      events: events.indices.contains(index) ? events[index] : nil, caption: caption(of: hold))
    let size = PixelSize(width: picture.width, height: picture.height)
    return try picture.overlaid(with: OverlayLayout(texts, in: size).boxes)
  }

  /// Returns the captions while a picture is on screen; nil if there are none.
  private func caption(of hold: FrameHold) -> String? {
    let shown = hold.startMs..<hold.startMs + hold.holdMs
    let texts = captions.filter { $0.unix.overlaps(shown) }.suffix(Self.mostCaptions).map(\.text.oneLine)
    return texts.isEmpty ? nil : texts.joined(separator: "; ")
  }
}
