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
  func file(forInputs count: Int) throws -> LabelFile? {
    guard let path else { return nil }
    guard count == 1 else {
      throw ValidationError("--labels belongs to one input; name one, or put labels.jsonl in each")
    }
    do throws(InvalidOption) {
      return try LabelFile(reading: path)
    } catch {
      throw ValidationError("--labels: \(error.cause)")
    }
  }
}
