import ArgumentParser
import FileSystem

/// The options of `purge`.
struct PurgeOptions: ParsableArguments {
  @OptionGroup var selection: NamedItems

  @Flag(help: "Show what would be done, and do nothing.")
  var dryRun = false

  /// Removes each item, and prints its name.
  func purge<Item>(
    all list: () throws -> [Item], named find: (String) throws -> Item, name: (Item) -> String,
    _ remove: (Item) throws -> Void
  ) throws {
    try selection.forEach(all: list, named: find) { item in
      if !dryRun { try remove(item) }
      answer("\(name(item)): \(dryRun ? "would be removed" : "removed")".oneLine)
    }
  }
}

/// Kept items that a call names, or all of them.
struct NamedItems: ParsableArguments {
  @Argument(help: ArgumentHelp("Names as in the list.", valueName: "name"))
  var names: [String] = []

  @Flag(help: "All in the list.")
  var all = false

  func validate() throws {
    guard all != !names.isEmpty else { throw ValidationError("name some, or say --all") }
  }

  /// Runs `body` for each item, also after a failure. Throws the last failure and prints those before it.
  func forEach<Item>(
    all list: () throws -> [Item], named find: (String) throws -> Item, _ body: (Item) throws -> Void
  ) throws {
    var failure: (any Error)?
    func attempt(_ step: () throws -> Void) {
      do {
        try step()
      } catch {
        if let failure { say("encoder-worker: \(failure)", .error) }
        failure = error
      }
    }
    if all {
      for item in try list() { attempt { try body(item) } }
    } else {
      for name in names { attempt { try body(find(name)) } }
    }
    if let failure { throw failure }
  }
}
