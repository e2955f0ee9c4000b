import ArgumentParser
import FrameBatches

/// A file of labels for one input; the same for each command that reads pictures of one session.
struct LabelOptions: ParsableArguments {
  @Option(
    name: .customLong("labels"),
    help: .call(
      "Labels for the pictures of one input: lines of JSON, WebVTT, SRT, or time,text. See docs/labels.md.",
      valueName: "file", example: "steps.vtt"),
    completion: .file())
  var path: String?

  /// - Throws: wrong usage if there are other inputs, whose pictures the labels would belong to as well.
  func requireOne(of inputs: Int) throws {
    guard path == nil || inputs == 1 else {
      throw ValidationError("--labels belongs to one input; name one, or put labels.jsonl in each")
    }
  }

  /// - Throws: wrong usage, also if there are other inputs.
  func file(forInputs count: Int) throws -> LabelFile? {
    try requireOne(of: count)
    do throws(InvalidOption) {
      return try path.map { (path) throws(InvalidOption) in try LabelFile(reading: path) }
    } catch {
      throw ValidationError("--labels: \(error.cause)")
    }
  }
}
