import ArgumentParser

/// The options in the words of the call itself.
enum CallOptions {
  /// Checks that a call gives no option without the one that it works with. From a file or the environment such an option is
  /// ignored, because these serve all calls.
  ///
  /// - Parameters:
  ///   - names: long names, with dashes.
  ///   - other: the option that they work with.
  /// - Throws: wrong usage.
  static func refuse(_ names: String..., without other: String) throws {
    let words = CommandLine.arguments.prefix { $0 != "--" }
    if let name = names.first(where: { name in words.contains { $0 == name || $0.hasPrefix(name + "=") } }) {
      throw ValidationError("\(name) works with \(other)")
    }
  }
}
