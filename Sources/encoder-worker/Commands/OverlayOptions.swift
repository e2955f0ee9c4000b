import ArgumentParser
import Encoding
import FrameBatches
import Reencoding
import Sessions

/// Options of the texts that are drawn into pictures.
struct OverlayOptions: ParsableArguments {
  @Option(
    help: .setting(
      "Draw into the pictures: clock (when each was captured), name (the session), events (pointer events and notes), caption (steps, captions, errors); separate by commas, or repeat.",
      valueName: "parts", example: "clock"),
    transform: Self.parts)
  var overlay: [[OverlayPart]] = []

  // An offset may begin with a minus sign.
  @Option(
    parsing: .unconditional,
    help: .setting(
      "Zone of the overlay's clock: UTC, +01:00, or a name like Europe/Berlin.",
      default: "as the batches state, else UTC",
      valueName: "zone", example: "UTC"))
  var overlayTimeZone: String?

  func validate() throws { _ = try chosen() }

  /// - Returns: nil for no overlay.
  /// - Throws: wrong usage.
  func chosen() throws -> Overlay? {
    var zone = InputOptions()
    do {
      try zone.setTimes(nameTime: nil, times: nil, start: nil, fps: nil, timeZone: overlayTimeZone)
    } catch {
      throw ValidationError("--overlay-time-zone: \(error.cause)")
    }
    return Overlay(overlay.flatMap { $0 }, timeZone: zone.timeZone)
  }

  private static func parts(_ text: String) throws -> [OverlayPart] {
    try text.split(separator: ",", omittingEmptySubsequences: false).map { word in
      guard let part = OverlayPart(rawValue: String(word)) else {
        throw ValidationError("'\(word)' is none of \(OverlayPart.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      return part
    }
  }
}
