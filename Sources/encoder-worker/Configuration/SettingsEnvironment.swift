import CLinux

/// Settings in the environment: `ENCODER_WORKER_MAX_HOLD` for `--max-hold`. Empty variables are ignored.
enum SettingsEnvironment {
  static let prefix = "ENCODER_WORKER_"
  static let file = prefix + "CONFIG"

  /// The variables with the prefix, sorted by name.
  static func variables() -> [(name: String, value: String)] {
    var found: [(name: String, value: String)] = []
    var next = clinux_environment()
    while let variable = next?.pointee {
      let text = String(cString: variable)
      if text.hasPrefix(prefix), let sign = text.firstIndex(of: "="), text.index(after: sign) < text.endIndex {
        found.append((String(text[..<sign]), String(text[text.index(after: sign)...])))
      }
      next = next?.advanced(by: 1)
    }
    return found.sorted { $0.name < $1.name }
  }

  /// `ENCODER_WORKER_MAX_HOLD` is `max-hold`.
  static func option(of variable: String) -> String {
    String(variable.dropFirst(prefix.count).lowercased().map { $0 == "_" ? "-" : $0 })
  }

  /// Whether Kubernetes sets the variable for a Service, which may be called `encoder-worker`.
  static func isServiceLink(_ variable: String) -> Bool {
    let words = variable.dropFirst(prefix.count).split(separator: "_")
    return words.contains("PORT") || words.suffix(2) == ["SERVICE", "HOST"]
  }

  /// The values of an option that may be repeated: separated by blanks or commas.
  static func values(_ text: String) -> [String] {
    text.split { $0.isWhitespace || $0 == "," }.map(String.init)
  }
}
