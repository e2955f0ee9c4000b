import ArgumentParser
import FrameBatches
import SegmentEncoder
import Sessions

/// Which batches a call is about: those that it names, those of a list, or those of a directory.
struct BatchSelection: ParsableArguments {
  @Argument(
    help: ArgumentHelp("Directories and archives; - reads an archive from standard input.", valueName: "batch"),
    completion: .file())
  var named: [String] = []

  @Option(
    help: ArgumentHelp(
      "A list of batches instead, one a line, or each ended by a zero byte; - reads it from standard input.",
      valueName: "file"),
    completion: .file())
  var from: String?

  @Option(
    name: .customLong("batches"),
    help: ArgumentHelp(
      "Instead each entry of a directory, but for names that begin with a dot or end in .tmp or .part.",
      valueName: "dir"),
    completion: .directory)
  var folder: String?

  @Option(
    help: ArgumentHelp(
      "Only every N-th batch that is named or listed, from the I-th, counted from 0; of a directory, those whose name belongs to this part, whatever else is there.",
      valueName: "i/n"),
    transform: Self.shard(_:))
  var shard: Shard?

  private static func shard(_ text: String) throws -> Shard {
    guard let shard = Shard(text) else { throw ValidationError("write I/N, with I from 0 to N-1") }
    return shard
  }

  func validate() throws {
    let given = [!named.isEmpty, from != nil, folder != nil].count { $0 }
    guard given > 0 else {
      throw ValidationError("no batch; name some, or a list with --from, or a directory of batches with --batches")
    }
    guard given == 1 else {
      throw ValidationError("batches are named, or come --from a list, or are a directory's (--batches): one of them")
    }
    guard named.count(where: { $0 == "-" }) <= 1 else {
      throw ValidationError("standard input can be one batch only")
    }
  }

  /// A batch that is this call's to encode.
  struct Choice: Sendable {
    let path: String
    /// Why it cannot be one.
    var refusal: BadBatch?
  }

  /// - Parameter output: where sessions are to go.
  /// - Throws: ``BadList``, ``BadTarget``; ``DiskError`` when reading fails.
  func choices(output: String) throws -> [Choice] {
    if let folder { return try choices(in: BatchFolder(opening: folder), output: output) }
    let listed = try from.map { try BatchList(reading: $0).paths } ?? named
    return listed.enumerated().filter { shard?.contains(position: $0.offset) ?? true }.map { Choice(path: $0.element) }
  }

  private func choices(in folder: BatchFolder, output: String) throws -> [Choice] {
    guard folder.allows(output: output) else {
      throw BadTarget(
        path: output, cause: "lies in \(folder.path), whose entries are batches", advice: "name an --output elsewhere")
    }
    return try folder.batches().filter { shard?.contains(name: $0.bytes) ?? true }.map { batch in
      guard let path = folder.path(of: batch) else {
        let bad = BadBatch("read", batch.name, "a name that is not UTF-8", advice: "give it another name")
        return Choice(path: folder.path + "/" + batch.name, refusal: bad)
      }
      return Choice(path: path)
    }
  }
}
