import ArgumentParser

/// The options in the words of the call itself.
enum CallOptions {
  /// - Throws: wrong usage if a call gives an option that does not work with another one.
  static func refuse(_ names: String..., with other: String) throws {
    if let name = names.first(where: has) { throw ValidationError("\(name) does not work with \(other)") }
  }

  /// Checks that a call gives no option without the one that it works with. From a file or the environment such an option is
  /// ignored, because these serve all calls.
  ///
  /// - Parameters:
  ///   - names: long names, with dashes.
  ///   - other: the option that they work with.
  /// - Throws: wrong usage.
  static func refuse(_ names: String..., without other: String) throws {
    if let name = names.first(where: has) { throw ValidationError("\(name) works with \(other)") }
  }

  /// Whether the call itself gives an option; a file or the environment does not count.
  ///
  /// - Parameter name: the long name, with dashes.
  static func has(_ name: String) -> Bool {
    CommandLine.arguments.prefix { $0 != "--" }.contains { $0 == name || $0.hasPrefix(name + "=") }
  }
}
