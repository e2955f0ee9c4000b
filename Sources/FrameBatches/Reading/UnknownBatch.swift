// Explains why a path is no batch: names the first file at fault, its kind, and the remedy.

import FileSystem

enum UnknownBatch {
  private static let advice = BadBatch.adviceOnForms

  /// Returns the cause and the advice for a batch that no format recognises.
  ///
  /// - Parameter name: the batch's name in messages.
  static func explain(_ source: BatchSource, name: String, limits: Limits) -> BadBatch {
    let contents = source.contents
    func bad(_ cause: String, _ advice: String) -> BadBatch {
      BadBatch("read", name, cause.isEmpty ? "no known format" : "no known format: \(cause)", advice: advice)
    }
    if let stream = contents.stream, stream.starts(with: [0xFF, 0xFE]) || stream.starts(with: [0xFE, 0xFF]) {
      return bad("the file is text in UTF-16", "convert it to UTF-8, for example with: iconv -f UTF-16 -t UTF-8")
    }
    if contents.text != nil {
      return bad("JSON, but no recording that is known", PictureLinesFormat.advice)
    }
    if let stream = contents.stream {
      if (try? TimeList(stream, at: .batch(name), zone: .utc)) != nil {
        return bad("it is a list of times", "give the folder of its pictures, and the list with --times")
      }
      guard let kind = FileKind(of: stream) else { return bad("neither frames nor an archive of frames", advice) }
      return bad(
        "the file is \(kind.described)",
        kind.advice(for: name == "stdin" ? nil : name) ?? "put it into a directory, named <unix ms>.jpg")
    }
    if let (first, remedy) = FinishedSegmentsFormat.advice(on: source, limits) {
      var kind = VideoFormat.mp4
      if let start = try? contents.start(of: first, count: 1_024), case .video(let video)? = FileKind(of: start) {
        kind = video
      }
      let (cause, advice) = videos(contents, like: first, kind)
      guard kind.isReadable else { return bad(cause, advice) }
      // A batch of a queue lies elsewhere for its producer.
      return bad(cause, source.path == nil ? remedy : "\(remedy); else \(advice)")
    }
    if let first = (contents.refused + contents.refusedRecordings).first(where: { !$0.isCopy }) {
      return BadBatch(
        "read", name, "no frames; \(first.source) is \(first.reason)", advice: contents.adviceOnRefused ?? advice)
    }
    if let (list, advice) = ListedTimesFormat.advice(on: contents) {
      return bad("'\(list.shortened(to: 80))' tells the times of its pictures", advice)
    }
    let names = NameAdvice(for: source, limits: limits)
    if contents.topNames.isEmpty {
      if let first = contents.recordings.first {
        let (cause, advice) = videos(contents, like: first, .mp4)
        return bad(cause, advice)
      }
      return inFolders(source, names, bad) ?? BadBatch("read", name, "nothing in it", advice: advice)
    }
    let (name, kind) = example(of: contents)
    let shown = "'\(lastComponent(of: name).shortened(to: 80))'"
    if case .video(let video)? = kind {
      let (cause, advice) = videos(contents, like: name, video)
      return bad(cause, advice)
    }
    guard let kind else { return bad("\(shown) is no image", advice) }
    if let advice = kind.advice(for: name) {
      let suffix = name.split(separator: ".").last.map { "." + $0.lowercased() } ?? ""
      let count = contents.topNames.count { $0.lowercased().hasSuffix(suffix) }
      let others = count > 1 ? " (\(count) files end in \(suffix))" : ""
      return bad("\(shown) is \(kind.described)\(others)", advice)
    }
    let (fault, advice) = fault(of: names, example: name)
    return bad("\(shown) \(fault)", advice)
  }

  /// Maximum number of files that are read to find a picture.
  private static let examples = 64

  /// Returns the first file that is an image or a video, and its kind; without one, the first file.
  private static func example(of contents: any BatchContents) -> (name: String, kind: FileKind?) {
    let names = contents.topNames.sorted()
    // Other files may lie before and between the pictures.
    let likely = names.filter(PictureNames.isPicture).prefix(examples) + names.prefix(examples)
    for name in likely {
      if let start = try? contents.start(of: name, count: 1_024), let kind = FileKind(of: start) { return (name, kind) }
    }
    return (likely.first ?? "", nil)
  }

  /// Explains a folder of MP4s, which are no frames; nil if it has none.
  static func videos(_ folder: DirectoryContents) -> (cause: String, advice: String)? {
    guard let first = folder.recordings.first else { return nil }
    let isTimed = folder.recordings.allSatisfy { name in
      NumberedName(name).runs.last.flatMap { Int64($0) }.map(Limits().instants.contains) ?? false
    }
    let (cause, advice) = videos(folder, like: first, .mp4)
    return (cause, isTimed ? "run: encoder-worker encode \(folder.place) --output DIR" : advice)
  }

  /// - Parameter name: of a video in the batch.
  private static func videos(
    _ contents: any BatchContents, like name: String, _ video: VideoFormat
  ) -> (cause: String, advice: String) {
    let suffix = name.split(separator: ".").last.map { "." + $0.lowercased() } ?? ""
    let folder = contents as? DirectoryContents
    let alike = (contents.recordings + contents.names).filter { $0.lowercased().hasSuffix(suffix) }
    let others = alike.count > 1 ? " (\(alike.count) files end in \(suffix))" : ""
    let cause = "'\(lastComponent(of: name).shortened(to: 80))' is \(video.described)\(others)"
    guard let folder else { return (cause, "unpack it; " + video.advice(for: lastComponent(of: name))) }
    guard alike.count > 1 else { return (cause, video.advice(for: folder.path(of: name))) }
    return (cause, video.advice(joiningWords: [DirectoryContents.pattern(of: alike, in: folder.place)]))
  }

  /// Explains a batch without files at its top level; nil if it has none in folders, either.
  private static func inFolders(
    _ source: BatchSource, _ advice: NameAdvice, _ bad: (_ cause: String, _ advice: String) -> BadBatch
  ) -> BadBatch? {
    let contents = source.contents
    guard let first = contents.names.sorted().first, let folder = first.split(separator: "/").first else {
      return (contents as? DirectoryContents)?.deeperFolder.map { deeper in
        bad(
          "its files lie in folders of folders, the first in '\(deeper.shortened(to: 80))'",
          "give the folders that hold the pictures, each as a batch: encoder-worker encode FOLDER --output DIR")
      }
    }
    let cause = "all its files lie in folders, the first in '\(folder.prefix(80))'"
    let names = contents.names.filter(PictureNames.isPicture)
    let isFilm = source.options.assumedStartMs != nil
    if names.isEmpty || names.contains(where: { PlainFormat.instant(ofName: $0) != nil }) {
      if isFilm, !names.isEmpty { return bad(cause, "give the folders themselves: \(source.folderWord)/*") }
      return bad(cause, "if each folder is a batch, run: encoder-worker encode --batches DIR --output DIR")
    }
    if let remedy = advice.remedy { return bad(cause, remedy) }
    let folders = Set(names.map { NaturalOrder.form(of: DurableFile.parentDirectory(of: $0)) })
    if isFilm, folders.count == 1, names.allSatisfy({ !NumberedName($0).runs.isEmpty }) {
      return bad(cause, "for numbered pictures \(advice.rate)")
    }
    let isLoose = ((try? contents.modifiedMs(first)) ?? nil) != nil
    let times =
      "if the files have the times of their captures, run: encoder-worker encode --batches DIR --times mtime --output DIR; else "
    return bad(cause + ", and their names tell no date", (isLoose ? times : "") + NameAdvice.renaming)
  }

  /// Returns the reason why the names of images contain no capture time, and the remedy.
  private static func fault(of names: NameAdvice, example name: String) -> (cause: String, advice: String) {
    let times = names.hasModificationTimes ? "use the times of the files with --times mtime" : nil
    let remedy =
      names.remedy
      ?? [names.remedyInTwoWays, (names.haveDates ? times : nil) ?? names.numbering ?? times, NameAdvice.renaming]
      .compactMap { $0 }.joined(
        separator: "; else ")
    let hasNumber = lastComponent(of: name).contains { $0.isASCII && $0.isNumber }
    let cause =
      names.haveDates
      ? "has a date in its name, not its capture time in unix milliseconds"
      : hasNumber
        ? "has a number in its name that is not its capture time in unix milliseconds"
        : "has no capture time in its name"
    return (cause, remedy)
  }
}
