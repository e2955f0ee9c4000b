import ArgumentParser
import FileSystem
import FrameBatches
import SegmentEncoder
import Sessions

/// The batches of a call: those that it names, those of a list, or those of a directory.
struct BatchSelection: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "Batches: directories, archives, or the images of one batch; - reads an archive from standard input.",
      valueName: "batch"),
    completion: .file())
  var named: [String] = []

  @Option(
    help: .call(
      "Read the batches' paths from a file, one a line or zero-terminated; - is standard input.",
      valueName: "file", replacesArguments: true),
    completion: .file())
  var filesFrom: String?

  @Option(
    name: .customLong("batches"),
    help: .call(
      "Encode every entry of a directory, except names that begin with a dot or end in .tmp or .part.",
      valueName: "dir", replacesArguments: true),
    completion: .directory)
  var folder: String?

  @Option(
    help: ArgumentHelp(
      "Encode one of N parts, counted from 0: by position for named and listed batches, by the hash of the name for --batches.",
      valueName: "i/n"),
    transform: { text in
      guard let shard = Shard(text) else { throw ValidationError("write I/N, with I from 0 to N-1") }
      return shard
    })
  var shard: Shard?

  func validate() throws {
    let given = [!named.isEmpty, filesFrom != nil, folder != nil].count { $0 }
    // Labels of a published session come without a batch.
    guard given > 0 || CallOptions.has("--labels") else {
      throw ValidationError(
        "no batch; name some, or a list with --files-from, or a directory of batches with --batches")
    }
    guard given <= 1 else {
      throw ValidationError(
        "batches are named, or come from a list (--files-from), or are a directory's (--batches): one of them")
    }
    guard named.count(where: { $0 == "-" }) <= 1 else {
      throw ValidationError("standard input can be one batch only")
    }
  }

  /// Whether the call names no batch.
  var isEmpty: Bool { named.isEmpty && filesFrom == nil && folder == nil }

  /// Whether a machine has chosen the batches: a list, a directory, a part of them.
  var isBulk: Bool { filesFrom != nil || folder != nil || shard != nil }

  /// - Parameter output: the directory for sessions; nil if nothing is written.
  /// - Throws: ``Failure``, ``BadTarget``; ``DiskError`` when reading fails.
  func batches(output: String?) throws -> [SelectedBatch] {
    if let folder { return try batches(in: BatchDirectory(opening: folder), output: output) }
    let paths = try filesFrom.map { try BatchList(reading: $0).paths } ?? named
    return Self.batches(paths).enumerated().filter { shard?.contains(position: $0.offset) ?? true }.map(\.element)
  }

  /// The batches that a list of paths names: all images in it are one batch, in the place of the first.
  static func batches(_ paths: [String]) -> [SelectedBatch] {
    let images = paths.filter { $0 != "-" && FileKind.isImage($0) }
    guard let first = images.first else { return paths.map { SelectedBatch(path: $0) } }
    let batch = SelectedBatch(path: DurableFile.parentDirectory(of: first), files: images)
    let grouped = Set(images)
    return paths.compactMap { $0 == first ? batch : grouped.contains($0) ? nil : SelectedBatch(path: $0) }
  }

  private func batches(in folder: BatchDirectory, output: String?) throws -> [SelectedBatch] {
    if let output, !folder.allows(output: output) {
      throw BadTarget(
        path: output, cause: "lies in \(folder.path), whose entries are batches", advice: "name an --output elsewhere")
    }
    return try folder.batches().filter { shard?.contains(name: $0.bytes) ?? true }.map { batch in
      guard let path = folder.path(of: batch) else {
        let bad = BadBatch("read", batch.name, "a name that is not UTF-8", advice: "give it another name")
        return SelectedBatch(path: folder.path + "/" + batch.name, refusal: bad)
      }
      return SelectedBatch(path: path)
    }
  }
}
