import ArgumentParser
import FileSystem

/// The form of results on standard output.
struct ResultOptions: ParsableArguments {
  @Flag(help: "Print results as JSON, one object a line.")
  var json = false

  /// Prints a result as JSON or as text.
  func print(json object: @autoclosure () -> String, text: @autoclosure () -> String) {
    answer(json ? object() : text())
  }

  /// Tells people what was done: on standard output, or beside JSON on standard error.
  ///
  /// - Parameter json: the line of JSON that goes with it.
  func tell(_ text: String, json object: @autoclosure () -> String? = nil) {
    guard json else { return answer(text.oneLine) }
    if let object = object() { answer(object) }
    say(text)
  }

  /// Prints results as JSON, or as a table with a row for each.
  func print<Result>(
    _ results: [Result], head: [String], json object: (Result) -> String, row: (Result) -> [String]
  ) {
    if json {
      for result in results { answer(object(result)) }
    } else {
      answer(table([head] + results.map(row)))
    }
  }
}

extension String {
  func leftAligned(_ width: Int) -> String { self + padding(to: width) }

  func rightAligned(_ width: Int) -> String { padding(to: width) + self }

  private func padding(to width: Int) -> String { String(repeating: " ", count: max(0, width - count)) }
}
