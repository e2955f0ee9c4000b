import ArgumentParser
import JSON

/// Facts of an option that the parser does not know. They are declared with the option, as a part of its help.
struct OptionFacts: Equatable {
  /// One of two places of batches: a command works with either.
  enum Place: String { case spool, store }

  /// A kind of value with a secret in it.
  enum Secret: String { case queue, receiver }

  /// Whether the option may be set in a file or in the environment: see `ArgumentHelp.setting`.
  var isSetting = false
  /// The default of an option that has none for the parser.
  var defaultValue: String?
  /// A valid value.
  var example = "1"
  /// The place of batches that the option names.
  var place: Place?
  var secret: Secret?
  /// Whether the option replaces the command's arguments.
  var replacesArguments = false
  /// Whether some calls need the option, which is none that the parser requires: see `MissingOption`.
  var isNeeded = false
}

extension OptionFacts {
  /// Before the facts in the parser's dump.
  static let mark = "facts: "

  /// Whether the dump has facts. Help for people never has them: only `CommandSchema` shows them, to itself.
  @TaskLocal static var areShown = false

  /// The facts as the parser dumps them, behind ``mark``.
  fileprivate var dumped: String {
    var members: [String: JSONValue] = [
      "setting": .bool(isSetting), "example": .string(example), "replacesArguments": .bool(replacesArguments),
      "needed": .bool(isNeeded),
    ]
    members["default"] = defaultValue.map { .string($0) }
    members["place"] = place.map { .string($0.rawValue) }
    members["secret"] = secret.map { .string($0.rawValue) }
    return Self.mark + JSONValue.object(members).line
  }

  /// - Parameter dumped: nil for an option without facts.
  init(dumped: String?) {
    guard let dumped, dumped.hasPrefix(Self.mark),
      let members = try? JSONParser.parse(Array(dumped.dropFirst(Self.mark.count).utf8)).object
    else {
      self.init()
      return
    }
    self.init(
      isSetting: members["setting"]?.bool == true, defaultValue: members["default"]?.string,
      example: members["example"]?.string ?? "1", place: members["place"]?.string.flatMap(Place.init),
      secret: members["secret"]?.string.flatMap(Secret.init),
      replacesArguments: members["replacesArguments"]?.bool == true, isNeeded: members["needed"]?.bool == true)
  }

  /// The help of an option with these facts.
  fileprivate func help(_ abstract: String, _ valueName: String?) -> ArgumentHelp {
    ArgumentHelp(
      abstract + (defaultValue.map { " (default: \($0))" } ?? ""), discussion: Self.areShown ? dumped : nil,
      valueName: valueName)
  }
}

extension ArgumentHelp {
  /// The help of an option that is a setting: a file and the environment may set it, too. Every other option concerns
  /// one call. An option that removes, reverses, or names the one thing that a call is about is never a setting.
  ///
  /// - Parameters:
  ///   - defaultValue: the default, for people, of an option that has none for the parser.
  ///   - example: a valid value, where that is no number.
  ///   - isNeeded: whether some calls need it.
  static func setting(
    _ abstract: String, default defaultValue: String? = nil, valueName: String? = nil, example: String = "1",
    place: OptionFacts.Place? = nil, secret: OptionFacts.Secret? = nil, isNeeded: Bool = false
  ) -> ArgumentHelp {
    OptionFacts(
      isSetting: true, defaultValue: defaultValue, example: example, place: place, secret: secret, isNeeded: isNeeded
    ).help(abstract, valueName)
  }

  /// The help of an option that concerns one call, and has facts.
  static func call(
    _ abstract: String, valueName: String? = nil, example: String = "1", replacesArguments: Bool = false,
    isNeeded: Bool = false
  ) -> ArgumentHelp {
    OptionFacts(example: example, replacesArguments: replacesArguments, isNeeded: isNeeded).help(abstract, valueName)
  }
}
