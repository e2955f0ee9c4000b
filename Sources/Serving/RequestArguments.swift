import Encoding
import FileSystem
import Films
import FrameBatches
import Sessions
import Showing

/// Arguments of a request that make no sense.
struct BadArguments: ClassifiedError {
  var kind: Failure.Kind { .usage }
  let description: String
}

extension Clip {
  /// Returns a name for tags and files; empty for the whole session.
  ///
  /// - Parameter range: the part of the session in unix milliseconds.
  func name(in range: Range<Int64>) -> String {
    let idle = idle.map { "-idle-\($0.name)" } ?? ""
    return self == .whole ? "" : "-\(range.lowerBound)-\(range.upperBound)-\(speed)\(idle)"
  }
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

  /// The maximum of the longer side of a picture; nil if the request names none.
  func pictureSide() throws(BadArguments) -> Int? { try number("max-side", in: PictureChoice.sides) }

  /// The pictures that a request chooses with `changed-only`, `min-change`, `max`, `max-tokens` and `max-side`.
  func pictureChoice() throws(BadArguments) -> PictureChoice {
    var choice = PictureChoice()
    if let text = argument("changed-only") {
      guard ["", "1", "true", "0", "false"].contains(text) else {
        throw BadArguments(description: "changed-only, as in ?changed-only=true, is true or false")
      }
      choice.changedOnly = !["0", "false"].contains(text)
    }
    if let text = argument("min-change") {
      guard let percentage = Double(text), PictureChoice.isPercentage(percentage) else {
        throw BadArguments(description: "min-change, as in ?min-change=5, is a percentage above 0, up to 100")
      }
      choice.minChange = percentage
    }
    choice.max = try number("max", in: 1...PictureChoice.servedPictures)
    choice.maxTokens = try number("max-tokens", in: 1...1_000_000_000)
    choice.maxSide = try pictureSide()
    return choice
  }

  func number(_ name: String, in range: ClosedRange<Int>) throws(BadArguments) -> Int? {
    guard let text = argument(name) else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw BadArguments(
        description:
          "\(name), as in ?\(name)=\(range.lowerBound), is a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
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
