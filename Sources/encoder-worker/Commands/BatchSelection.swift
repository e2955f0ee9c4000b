import ArgumentParser
import FileSystem
import FrameBatches
import SegmentEncoder
import Sessions

/// Which batches a call is about: those that it names, those of a list, or those of a directory.
struct BatchSelection: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "Batches: directories, archives, or the images of one batch; - reads an archive from standard input.",
      valueName: "batch"),
    completion: .file())
  var named: [String] = []

  @Option(
    help: ArgumentHelp(
      "Read the batches' paths from a file, one a line or zero-terminated; - is standard input.",
      valueName: "file"),
    completion: .file())
  var from: String?

  @Option(
    name: .customLong("batches"),
    help: ArgumentHelp(
      "Encode every entry of a directory, except names that begin with a dot or end in .tmp or .part.",
      valueName: "dir"),
    completion: .directory)
  var folder: String?

  @Option(
    help: ArgumentHelp(
      "Encode one of N parts, counted from 0: by position for named and listed batches, by the hash of the name for --batches.",
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
  struct BatchArgument: Sendable {
    /// As it was given; of images, their directory.
    let path: String
    /// The images of a batch, where they were named one by one.
    var files: [String] = []
    /// Why it cannot be one.
    var refusal: BadBatch?
  }

  /// - Parameter output: where sessions are to go.
  /// - Throws: ``BadList``, ``BadTarget``; ``DiskError`` when reading fails.
  func choices(output: String) throws -> [BatchArgument] {
    if let folder { return try choices(in: BatchDirectory(opening: folder), output: output) }
    let listed = try from.map { try BatchList(reading: $0).paths } ?? named
    return Self.batches(listed).enumerated().filter { shard?.contains(position: $0.offset) ?? true }.map(\.element)
  }

  /// The batches that a list of paths names: all images in it are one batch, in the place of the first.
  static func batches(_ paths: [String]) -> [BatchArgument] {
    let images = paths.filter { $0 != "-" && FileKind.isImage($0) }
    guard let first = images.first else { return paths.map { BatchArgument(path: $0) } }
    let batch = BatchArgument(path: DurableFile.parentDirectory(of: first), files: images)
    let others = Set(images)
    return paths.compactMap { $0 == first ? batch : others.contains($0) ? nil : BatchArgument(path: $0) }
  }

  private func choices(in folder: BatchDirectory, output: String) throws -> [BatchArgument] {
    guard folder.allows(output: output) else {
      throw BadTarget(
        path: output, cause: "lies in \(folder.path), whose entries are batches", advice: "name an --output elsewhere")
    }
    return try folder.batches().filter { shard?.contains(name: $0.bytes) ?? true }.map { batch in
      guard let path = folder.path(of: batch) else {
        let bad = BadBatch("read", batch.name, "a name that is not UTF-8", advice: "give it another name")
        return BatchArgument(path: folder.path + "/" + batch.name, refusal: bad)
      }
      return BatchArgument(path: path)
    }
  }
}
