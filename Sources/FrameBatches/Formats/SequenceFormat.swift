// One file of several pictures, alone in its batch: an animation or the pages of a TIFF. Each picture becomes a frame.

import FileSystem

package enum SequenceFormat: BatchFormat {
  package static let name = "pictures of one file"

  /// Names of other files that may lie beside the picture. More names are never looked at.
  private static let maximumNames = 64
  /// Suffixes of pictures that are never several, as in most batches of one picture.
  private static let stillSuffixes: Set = ["bmp", "jpeg", "jpg"]

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard let path = onlyPicture(of: source.contents.names), let file = try file(path, in: source, limits),
      let kind = ImageKind(of: file), let sequence = ImageSequence(of: file, kind)
    else {
      if case .durations? = source.options.times {
        throw BadBatch(
          "read", source.name, "--start without a rate, and not one file whose pictures have durations of their own",
          advice: "add --fps or --interval")
      }
      return nil
    }
    var draft = BatchDraft()
    let starts: [Int64]
    if case .numbers(let startMs, let rate, _)? = source.options.times {
      starts = (0...sequence.pictures.count).map { startMs &+ (rate.offsetMs(of: Int64($0)) ?? 0) }
      draft.intervalMs = rate.intervalMs
    } else {
      guard sequence.hasDurations else { throw timeless(sequence, source) }
      let startMs: Int64
      (startMs, draft) = try start(of: sequence, in: source, limits)
      let offsets = sequence.offsetsMs
      starts = (offsets.starts + [offsets.end]).map { startMs &+ $0 }
    }
    draft.defaultCapture = .onChange
    draft.frames = sequence.pictures.indices.map { index in
      let look = FrameComposition(content: .picture(index), masks: .none)
      return Frame(source: "\(lastComponent(of: path))#\(index + 1)", paths: [path], timeMs: starts[index], look: look)
    }
    draft.endMs = starts.last
    draft.sideFiles.insert(path)
    draft.refused = source.contents.topNames.filter { $0 != path }.map {
      RefusedFrame(source: $0, reason: "not the picture of the batch", kind: .otherName)
    }
    if !sequence.isWhole {
      draft.warnings.append(
        "the file breaks off, or is damaged, after its \(count(sequence.pictures.count, "picture"))")
    }
    return [draft]
  }

  /// Returns the only picture by the names' suffixes, if it may be several.
  private static func onlyPicture(of names: [String]) -> String? {
    guard names.count <= maximumNames else { return nil }
    var only: String?
    for name in names where PictureNames.isPicture(name) || PictureNames.parts(of: name).suffix == "apng" {
      guard only == nil else { return nil }
      only = name
    }
    return only.flatMap { stillSuffixes.contains(PictureNames.parts(of: $0).suffix) ? nil : $0 }
  }

  /// Returns the file's bytes; nil for one that is missing.
  private static func file(_ path: String, in source: BatchSource, _ limits: Limits) throws -> [UInt8]? {
    switch try source.contents.contents(of: path, limit: limits.fileBytes) {
    case .bytes(let file)?: return file
    // The decoder says why it refuses the frame, if another format finds one.
    case .refused?, nil: return nil
    }
  }

  /// Returns the capture of the first picture, and the facts of the form that tells it.
  private static func start(
    of sequence: ImageSequence, in source: BatchSource, _ limits: Limits
  ) throws -> (startMs: Int64, BatchDraft) {
    if case .durations(let startMs)? = source.options.times { return (startMs, BatchDraft()) }
    for format in FormatList.all where format != NativeFormat.self && format != SequenceFormat.self {
      guard let drafts = try format.read(source, limits: limits) else { continue }
      guard drafts.count == 1, let frame = drafts[0].frames.first, drafts[0].frames.count == 1 else { break }
      return (frame.timeMs, drafts[0])
    }
    if let startMs = source.options.assumedStartMs { return (startMs, BatchDraft()) }
    throw BadBatch(
      "read", source.name,
      "the \(sequence.pictures.count) pictures of the \(sequence.kind.name) have durations, but its name tells no capture time",
      advice: "name it <unix ms of its first picture>, or give encode --start, for example --start 2026-01-08T08:05:12Z"
    )
  }

  private static func timeless(_ sequence: ImageSequence, _ source: BatchSource) -> BadBatch {
    let isFilm = source.options.assumedStartMs != nil
    return BadBatch(
      "read", source.name, "the file has \(sequence.pictures.count) pages, and does not tell their times",
      advice:
        "give the pages of a second to \(isFilm ? "film, for example" : "encode, for example --start 2026-01-08T08:05:12Z") --fps 10"
    )
  }
}
