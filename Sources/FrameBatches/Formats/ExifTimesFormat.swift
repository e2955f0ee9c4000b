import FileSystem

/// Files whose capture times are those that their cameras wrote into them, on request of the user.
package enum ExifTimesFormat: BatchFormat {
  package static let name = "times in EXIF"

  /// EXIF's texts of a time, and the number in the file's name, which orders the pictures of a second.
  private static let pattern = NamePattern("%Y:%m:%d %H:%M:%S[.%f][%z][#%q]")
  /// DateTimeOriginal, SubSecTimeOriginal, OffsetTimeOriginal.
  private static let tags = (time: 0x9003, fraction: 0x9291, zone: 0x9011)
  /// Bytes of a file that are read first. A JPEG has its EXIF data there.
  private static let headBytes = 256 << 10

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard source.options.times == .exif else { return nil }
    var draft = BatchDraft()
    draft.defaultCapture = .onChange
    let top = source.contents.topNames
    let paths = top.isEmpty ? source.contents.names : top
    let numbers = (try? NameCounter(of: paths))?.places ?? [:]
    var files: [NamedTimesFormat.NamedFile] = []
    for path in paths {
      guard let exif = try exif(of: path, in: source.contents, limits) else {
        draft.refused.append(RefusedFrame(source: path, reason: "no EXIF data"))
        continue
      }
      guard let text = text(of: exif),
        case let number = numbers[path],
        let match = pattern?.match(text + (number.map { "#\($0)" } ?? ""))
      else {
        draft.refused.append(RefusedFrame(source: path, reason: "no capture time (DateTimeOriginal) in its EXIF data"))
        continue
      }
      if match.needsZone && source.options.timeZone == nil {
        throw BadBatch(
          "read", source.name,
          "the EXIF data of \(lastComponent(of: path).shortened(to: 80)) tell local time, not its zone",
          advice: "say where it was captured with --time-zone, for example --time-zone Europe/Berlin")
      }
      guard let time = NamedTime(match, zone: source.options.timeZone) else {
        draft.refused.append(RefusedFrame(source: path, reason: "its EXIF data tell a time that does not exist"))
        continue
      }
      files.append(NamedTimesFormat.NamedFile(path: path, time: time))
    }
    NamedTimesFormat.add(files, to: &draft, source)
    if let order = NumberedFormat.order(of: draft.frames) { (draft.frames, draft.isListed) = (order, true) }
    return [draft]
  }

  /// Returns the EXIF data of a file; nil if it has none, or is no image.
  private static func exif(of path: String, in contents: any BatchContents, _ limits: Limits) throws -> ExifData? {
    guard let head = try contents.start(of: path, count: headBytes), let kind = ImageKind(of: head) else { return nil }
    let isCut = head.count == headBytes
    // A TIFF without its directories seems to have no tag.
    if !(isCut && kind == .tiff), let exif = ExifData(of: head, kind: kind, jpeg: JPEGFile(head)) { return exif }
    // A PNG and a TIFF may have it behind the picture, and a WebP has.
    guard kind != .jpeg, isCut,
      case .bytes(let file)? = try contents.contents(of: path, limit: limits.fileBytes)
    else { return nil }
    return ExifData(of: file, kind: kind, jpeg: nil)
  }

  /// Returns the time, its fraction and its zone in one text; nil without a time.
  private static func text(of exif: ExifData) -> String? {
    guard let time = exif.text(tags.time, in: .capture) else { return nil }
    let fraction = exif.text(tags.fraction, in: .capture)?.prefix { $0 != " " }.prefix(9) ?? ""
    let zone = exif.text(tags.zone, in: .capture)?.prefix { $0 != " " } ?? ""
    return time + (fraction.isEmpty ? "" : ".\(fraction)") + zone
  }
}
