import ArgumentParser
import TestSupport
import Testing

@testable import encoder_worker

private let program: any ParsableCommand.Type = encoder_worker.EncoderWorker.self

/// The help of all commands, and their options by name.
@Suite struct HelpTextTests {
  private struct Leaf {
    let words: [String]
    let schema: CommandSchema
    var name: String { words.joined(separator: " ") }
  }

  private let leaves: [Leaf]

  init() throws {
    func leaves(_ schema: CommandSchema, _ words: [String]) -> [Leaf] {
      let own = schema.subcommands.filter { $0.name != "help" }
      return own.isEmpty ? [Leaf(words: words, schema: schema)] : own.flatMap { leaves($0, words + [$0.name]) }
    }
    self.leaves = leaves(try .program(program), [])
  }

  private static func lines(_ words: String...) throws -> [String] { try lines(words) }

  private static func lines(_ words: [String]) throws -> [String] {
    try #require(try HelpText.answer(to: words, of: program)).split(separator: "\n", omittingEmptySubsequences: false)
      .map(String.init)
  }

  @Test func helpOfTheProgramFitsAScreenAndNamesTheCommands() throws {
    let lines = try Self.lines("help")
    #expect(lines.count <= 24 && lines.allSatisfy { $0.count <= 80 })
    #expect(lines[0].hasPrefix("USAGE:") && lines[1].hasPrefix("EXAMPLE:"))
    #expect(try Self.lines("--help") == lines && Self.lines("-h") == lines)
    let groups = EncoderWorker.configuration.groupedSubcommands
    #expect(groups.map(\.name) == ["Make", "Look", "Operate"])
    for command in groups.flatMap(\.subcommands) {
      let name = try #require(command.configuration.commandName)
      #expect(lines.contains { $0.dropFirst(9).hasPrefix(name + " ") }, "\(name)")
    }
  }

  @Test func helpOfEachCommandBeginsWithUsageAndAnExample() throws {
    for leaf in leaves {
      let lines = try Self.lines(["help"] + leaf.words)
      #expect(try Self.lines(leaf.words + ["--help"]) == lines, "\(leaf.name)")
      #expect(lines.allSatisfy { $0.count <= 80 }, "\(leaf.name): \(lines.filter { $0.count > 80 })")
      #expect(lines[0].hasPrefix("USAGE: encoder-worker "), "\(leaf.name)")
      let example = try #require(lines.prefix { !$0.isEmpty }.last { $0.hasPrefix("EXAMPLE: ") }, "\(leaf.name)")
      let words = example.split(separator: " ").dropFirst(2).map(String.init)
      let (command, count) = try CommandSchema.program(program).find(words[...])
      #expect(command.name == leaf.schema.name, "\(example)")
      // The options that `config` is asked about are those of another command.
      guard leaf.name != "config show" else { continue }
      #expect(ArgumentTokens(words.dropFirst(count), of: command).unknown.isEmpty, "\(example)")
      let given = Set(words.filter { $0.hasPrefix("--") }.map { String($0.dropFirst(2)) })
      let required = leaf.schema.page?.required ?? []
      #expect(required.isEmpty || required.contains { given.isSuperset(of: $0) }, "\(example)")
      #expect(leaf.schema.arguments.allSatisfy(\.isOptional) || words.count > count + 2 * given.count, "\(example)")
    }
  }

  @Test func requiredOptionsStandBeforeTheCommonOnesAndTheseBeforeTheRest() throws {
    let order = ["REQUIRED", "COMMON OPTIONS:", "MORE OPTIONS:", "DETAILS:"]
    for leaf in leaves {
      let page = try #require(leaf.schema.page, "\(leaf.name)")
      let lines = try Self.lines(["help"] + leaf.words)
      let titles = order.compactMap { title in lines.firstIndex { $0.hasPrefix(title) } }
      #expect(titles == titles.sorted(), "\(leaf.name)")
      func place(_ option: String) -> Int? {
        let ends = lines.indices.filter { lines[$0].contains(#/^  (-\w, )?--[a-z-]+( |$)/#) }
        return ends.first {
          lines[$0].contains("--\(option) ") || lines[$0].hasSuffix("--\(option)")
        }
      }
      let required = page.required.flatMap(\.self)
      #expect(
        Set(leaf.schema.options.filter(\.isRequired).map(\.name)).isSubset(of: required + ["notify"]), "\(leaf.name)")
      #expect(
        Set(required).isDisjoint(with: page.common) && Set(page.common).count == page.common.count, "\(leaf.name)")
      for option in required + page.common { #expect(leaf.schema.option(option) != nil, "\(leaf.name) --\(option)") }
      let common = try #require(lines.firstIndex { $0.hasPrefix("COMMON") || $0.hasPrefix("MORE") }, "\(leaf.name)")
      for option in required { #expect(place(option).map { $0 < common } == true, "\(leaf.name) --\(option)") }
      for option in leaf.schema.options where option.name != "version" {
        #expect(place(option.name) != nil, "\(leaf.name) --\(option.name)")
      }
    }
  }

  /// The same text, but for the default, stands for the same meaning.
  @Test func optionOfOneNameHasOneMeaning() throws {
    // An address and what is served there, the extra value of `reencode`, the form of a result or its receiver, and
    // sessions that are compacted as they end or once they have an age.
    let different: Set = ["listen", "quality", "to", "compact"]
    var meanings: [String: [String: String]] = [:]
    for leaf in leaves {
      for option in leaf.schema.options {
        let text = String(option.abstract.prefix { $0 != "(" })
        meanings[option.name, default: [:]][option.abstract.contains("(default") ? text : option.abstract + " "] =
          leaf.name
      }
    }
    let twice = meanings.filter { $0.value.count > 1 }
    #expect(Set(twice.keys) == different, "\(twice.filter { !different.contains($0.key) })")
  }

  @Test func helpOfUnknownCommandsIsWrongUsage() {
    for words in [["help", "nothing"], ["help", "quarantine", "lst"], ["nothing", "--help"]] {
      #expect(throws: ValidationError.self, "\(words)") { try HelpText.answer(to: words, of: program) }
    }
  }

  @Test func defaultCommandHasItsOwnHelp() throws {
    #expect(try Self.lines("--spool", "x", "--help") == Self.lines("help", "run"))
    #expect(try HelpText.answer(to: ["run", "--spool", "x"], of: program) == nil)
    #expect(try HelpText.answer(to: ["encode", "--", "--help"], of: program) == nil)
  }
}
