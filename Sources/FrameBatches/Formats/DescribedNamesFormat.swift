/// Files whose names the user describes. Where the pattern reads none of them, the batch may be one of a recorder.
package enum DescribedNamesFormat: BatchFormat {
  package static var name: String { NamedTimesFormat.name }

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard case .names(let pattern)? = source.options.times else { return nil }
    let naming = NamedTimesFormat.Naming(describedBy: pattern)
    guard source.contents.names.contains(where: { naming.match($0, in: source.name) != nil }) else { return nil }
    return try NamedTimesFormat.read(source, limits: limits)
  }
}
