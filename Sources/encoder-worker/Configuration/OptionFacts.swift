import ArgumentParser
import Synchronization

/// Facts of an option that the parser does not know. They are declared with the option, as a part of its help.
struct OptionFacts: Equatable {
  /// One of two places of batches: a command works with either.
  enum Backend { case spool, store }

  /// A kind of value with a secret in it.
  enum Secret { case queue, receiver }

  /// Whether the option may be set in a file or in the environment: see `ArgumentHelp.setting`.
  var isSetting = false
  /// The default of an option that has none for the parser.
  var defaultValue: String?
  /// A valid value.
  var example = "1"
  /// The place of batches that the option names.
  var place: Backend?
  var secret: Secret?
  /// Whether the option replaces the command's arguments.
  var replacesArguments = false
  /// Whether some calls need the option, which is none that the parser requires: see `MissingOption`.
  var isNeeded = false
}

extension OptionFacts {
  /// The facts of the options in a dump of the parser. An option has its number there in the place of a discussion.
  final class Register: Sendable {
    private let all = Mutex<[OptionFacts]>([])

    /// - Returns: the number of the facts.
    func add(_ facts: OptionFacts) -> Int {
      all.withLock { all in
        all.append(facts)
        return all.count - 1
      }
    }

    /// - Parameter number: as the parser dumps it; nil for an option without facts.
    func facts(_ number: String?) -> OptionFacts {
      all.withLock { all in
        guard let index = number.flatMap({ Int($0) }), all.indices.contains(index) else { return OptionFacts() }
        return all[index]
      }
    }
  }

  /// The register of the dump that is made. Only `CommandSchema` makes one with numbers, for itself.
  @TaskLocal static var register: Register?

  /// The help of an option with these facts.
  fileprivate func help(_ abstract: String, _ valueName: String?) -> ArgumentHelp {
    ArgumentHelp(
      abstract + (defaultValue.map { " (default: \($0))" } ?? ""),
      discussion: Self.register.map { "\($0.add(self))" }, valueName: valueName)
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
    place: OptionFacts.Backend? = nil, secret: OptionFacts.Secret? = nil, isNeeded: Bool = false
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
