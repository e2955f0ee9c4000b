import Foundation

/// An animated picture as Pillow shows it.
public struct ShownAnimation {
  private struct Answer: Decodable {
    let format: String
    let width, height: Int
    let loop: Int?
    let holdsMs: [Int64]
  }

  public let format: String
  public let width: Int
  public let height: Int
  /// Whether it begins again at its end, for ever.
  public let isEndless: Bool
  /// The hold of each picture.
  public let holdsMs: [Int64]
  public let pictures: [Pixels]

  public init(_ file: String) throws {
    let scratch = try ScratchDirectory()
    let text = try Pillow.run("show_animation.py", [file, scratch.path])
    let answer = try JSONDecoder().decode(Answer.self, from: Data(text.utf8))
    (format, width, height) = (answer.format, answer.width, answer.height)
    isEndless = answer.loop == 0
    holdsMs = answer.holdsMs
    pictures = try answer.holdsMs.indices.map { number in
      let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: scratch.path("\(number).rgb"))))
      return Pixels(width: answer.width, height: answer.height, bytes: bytes)
    }
  }

  /// When each picture comes on screen, and when the last one leaves it.
  public var bounds: [Int64] { holdsMs.reduce(into: [0]) { $0.append($0[$0.count - 1] + $1) } }
}
