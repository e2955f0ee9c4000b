import ArgumentParser
import JSON
import Remote
import Sessions

/// Checks that an object store keeps what workers rely on.
struct ConfigCheckCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Check that an object store does what workers and readers rely on.",
    discussion: """
      Writes small objects under a prefix of a random name, races conditional writes, lists, reads back and removes all of it. Prints a row for each check. Exit status 0 if the store does all that workers and readers of sessions need, 65 if not.
      """)

  static let page = HelpPage(example: "config check --store s3://bucket", required: [["store"]], common: ["json"])

  @Option(
    help: .setting(
      RemoteOptions.storeHelp, valueName: "url", example: "s3://bucket", place: .store),
    transform: S3Location.init(_:))
  var store: S3Location

  @OptionGroup var access: StoreAccess
  @OptionGroup var results: ResultOptions
  @OptionGroup var settings: SettingsOption

  func execute() throws {
    let check = StoreCheck(try S3Client(store, access.settings()))
    let findings = try check.run()
    results.print(findings, head: ["check", "result", "meaning"]) { finding in
      var members: [String: JSONValue] = [
        "check": .string(finding.check.rawValue), "works": .bool(finding.fault == nil),
        "required": .bool(finding.check.isRequired),
      ]
      members["fault"] = finding.fault.map { .string($0) }
      return JSONValue.object(members).line
    } row: { finding in
      [finding.check.rawValue, Self.word(finding), finding.fault ?? finding.check.meaning]
    }
    let missing = findings.filter { $0.fault != nil && $0.check.isRequired }
    guard missing.isEmpty else {
      say("encoder-worker: \(store): workers or readers cannot use this store; see docs/stores.md", .error)
      throw ExitStatus.badBatch
    }
  }

  private static func word(_ finding: StoreCheck.Finding) -> String {
    finding.fault == nil ? "works" : finding.check.isRequired ? "MISSING" : "absent"
  }
}
