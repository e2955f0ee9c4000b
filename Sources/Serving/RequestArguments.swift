import Encoding
import FrameBatches
import Sessions

/// Arguments of a request that make no sense.
struct BadArguments: Error, CustomStringConvertible {
  let description: String
}

extension HTTPRequest {
  /// The part of a session that a request for a film names with `from`, `to`, `speed`, `idle` and `idle-events`.
  func clip() throws(BadArguments) -> Clip {
    guard let speed = FilmSpeed(argument("speed") ?? "1") else {
      throw BadArguments(description: "speed, as in ?speed=2, is \(FilmSpeed.rule)")
    }
    return Clip(
      from: try optionalInstant("from"), to: try optionalInstant("to"), speed: speed, idle: try idle(at: speed))
  }

  private func idle(at speed: FilmSpeed) throws(BadArguments) -> IdleRule? {
    guard let text = argument("idle"), !text.isEmpty else { return nil }
    guard var rule = IdleRule(text) else {
      throw BadArguments(description: "idle, as in ?idle=cut, is \(IdleRule.rule)")
    }
    if let fault = rule.fault(at: speed) { throw BadArguments(description: "idle=\(text): \(fault)") }
    rule.endsAtPointerEvents = argument("idle-events") == "1"
    return rule
  }

  /// The maximum of the longer side of an animated picture, which a request names with `max-side`.
  func maxSide() throws(BadArguments) -> Int {
    let text = argument("max-side") ?? "\(AnimationFormat.defaultSide)"
    guard let side = Int(text), AnimationFormat.sides.contains(side) else {
      let (from, to) = (AnimationFormat.sides.lowerBound, AnimationFormat.sides.upperBound)
      throw BadArguments(description: "max-side, as in ?max-side=320, is a number of pixels from \(from) to \(to)")
    }
    return side
  }

  private func optionalInstant(_ name: String) throws(BadArguments) -> SessionInstant? {
    (argument(name) ?? "").isEmpty ? nil : try instant(name)
  }

  /// The instant that an argument names.
  func instant(_ name: String) throws(BadArguments) -> SessionInstant {
    // No form of an instant has a space; it was a plus sign.
    let text = argument(name) ?? ""
    guard let instant = SessionInstant(text.replacing(" ", with: "+")) else {
      throw BadArguments(description: "\(name), as in ?\(name)=1767859512340, is an instant: \(SessionInstant.rule)")
    }
    return instant
  }
}
