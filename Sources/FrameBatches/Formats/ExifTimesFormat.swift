import FileSystem

/// Files whose capture times are those that their cameras wrote into them, on request of the user.
package enum ExifTimesFormat: BatchFormat {
  package static let name = "times in EXIF"

  /// EXIF's texts of a time, and the number in the file's name, which orders the pictures of a second.
  private static let pattern = NamePattern("%Y:%m:%d %H:%M:%S[.%f][%z][#%q]")
  /// The tags of a time, the best one first: that of the capture, of the scan, and of the last change by any program.
  private static let tags: [(name: String, time: Int, ExifData.Directory, fraction: Int, zone: Int)] = [
    ("DateTimeOriginal", 0x9003, .capture, 0x9291, 0x9011), ("DateTimeDigitized", 0x9004, .capture, 0x9292, 0x9012),
    ("DateTime", 0x0132, .image, 0x9290, 0x9010),
  ]
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
    var (notes, other) = ([String: String](), [String: Int]())
    for path in paths {
      guard let exif = try exif(of: path, in: source.contents, limits) else {
        draft.refused.append(RefusedFrame(source: path, reason: "no EXIF data"))
        continue
      }
      guard let said = time(of: exif), case let number = numbers[path],
        let match = pattern?.match(said.text + (number.map { "#\($0)" } ?? ""))
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
      if said.tag != tags[0].name {
        notes[path] = "its time is \(said.tag) of its EXIF data, because it has no \(tags[0].name)"
        other[said.tag, default: 0] += 1
      }
      files.append(NamedTimesFormat.NamedFile(path: path, time: time))
    }
    NamedTimesFormat.add(files, to: &draft, source)
    for index in draft.frames.indices {
      guard let note = notes[draft.frames[index].paths[0]] else { continue }
      draft.frames[index].note = [note, draft.frames[index].note].compactMap { $0 }.joined(separator: "; ")
    }
    if !other.isEmpty {
      let counts = other.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
      draft.warnings.append(
        "\(notes.count) of \(files.count) files have no \(tags[0].name) in their EXIF data; read instead: \(counts). "
          + "A program may have written these when it saved the picture")
    }
    if let order = NumberedFormat.order(of: draft.frames) {
      (draft.frames, draft.isListed) = (order, true)
    } else {
      let series = NameSeries.ofNames(draft.frames.map(\.paths[0]))
      draft.warnings += [InterleavedSources.warning(on: draft.frames, of: series, source)].compactMap(\.self)
    }
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

  /// Returns the best time with its fraction and its zone in one text, and the name of its tag; nil without a time.
  private static func time(of exif: ExifData) -> (text: String, tag: String)? {
    for (name, tag, directory, fraction, zone) in tags {
      guard let time = exif.text(tag, in: directory), time.contains(where: \.isNumber) else { continue }
      let fraction = exif.text(fraction, in: .capture)?.prefix { $0 != " " }.prefix(9) ?? ""
      let zone = exif.text(zone, in: .capture)?.prefix { $0 != " " } ?? ""
      return (time + (fraction.isEmpty ? "" : ".\(fraction)") + zone, name)
    }
    return nil
  }
}
