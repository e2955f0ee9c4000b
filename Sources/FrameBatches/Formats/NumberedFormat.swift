// Numbered frames of any recorder: files with a number in their names, captured at a steady rate from a start that the user states.

import FileSystem

package enum NumberedFormat: BatchFormat {
  package static let name = "numbered frames"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard case .numbers(let startMs, let rate, let pattern)? = source.options.times else { return nil }
    let names = source.contents.topNames
    var pictures = names.filter(PictureNames.canBePicture)
    if pictures.isEmpty, let first = source.contents.names.filter(PictureNames.canBePicture).min() {
      throw BadBatch(
        "read", source.name, "all its pictures lie in folders, the first is \(first.shortened(to: 255))",
        advice: "give the folders themselves, in their order, with one --session: \(source.folderWord)/*")
    }
    // An archive has the names in its folders, too. Where pictures lie beside folders, those in the folders are left out.
    let flat = pictures.filter { !$0.contains("/") }
    let inFolders = flat.isEmpty ? [] : pictures.filter { $0.contains("/") }
    if !flat.isEmpty { pictures = flat }
    let instants = pictures.compactMap(PlainFormat.instant(ofName:))
    if let example = pictures.min(), instants.count == pictures.count, instants.allSatisfy(limits.instants.contains) {
      throw BadBatch(
        "read", source.name, "the names are capture times already, as \(lastComponent(of: example).shortened(to: 80))",
        advice: "leave out --start, and --fps or --interval")
    }
    var orders =
      try pattern.map { Self.orders(of: pictures, by: $0, source) } ?? [Self.order(of: pictures, source, limits)]
    orders[0].refused += inFolders.map {
      RefusedFrame(source: $0, reason: "in a folder of its own", kind: .inFolder)
    }
    orders[0].refused += names.filter { !PictureNames.canBePicture($0) }.map {
      RefusedFrame(source: $0, reason: "no picture, by its suffix")
    }
    return orders.map { $0.draft(from: startMs, at: rate) }
  }

  /// Pictures with their places, counted from the first.
  fileprivate struct Order {
    var session: String?
    var places: [(path: String, place: Int64)] = []
    var refused: [RefusedFrame] = []
    var warnings: [String] = []

    func draft(from startMs: Int64, at rate: CaptureRate) -> BatchDraft {
      var draft = BatchDraft()
      draft.session = session
      draft.defaultCapture = .onChange
      draft.intervalMs = rate.intervalMs
      (draft.refused, draft.warnings) = (refused, warnings)
      for (path, place) in places.sorted(by: { ($0.place, $0.path) < ($1.place, $1.path) }) {
        guard let offsetMs = rate.offsetMs(of: place),
          case (let timeMs, let isTooLarge) = startMs.addingReportingOverflow(offsetMs), !isTooLarge
        else {
          draft.refused.append(RefusedFrame(source: path, reason: "number \(place) is too large"))
          continue
        }
        draft.frames.append(Frame(source: lastComponent(of: path), path: path, timeMs: timeMs))
      }
      return draft
    }
  }

  /// Returns the order by the counter in the names.
  private static func order(of pictures: [String], _ source: BatchSource, _ limits: Limits) throws -> Order {
    let fault: CounterFault
    do throws(CounterFault) { return Order(try NameCounter(of: pictures)) } catch { fault = error }
    if let thumbnails = try Thumbnails(of: fault.series, in: source.contents) {
      var order = Order(try NameCounter(of: thumbnails.pictures))
      order.refused += thumbnails.refused
      return order
    }
    throw BadBatch("read", source.name, fault.cause, advice: fault.advice(for: pictures, source, limits))
  }

  /// Returns the orders by the pattern of the user, one for each session. A pattern of a time only orders the pictures.
  private static func orders(of pictures: [String], by pattern: NamePattern, _ source: BatchSource) -> [Order] {
    var sessions: [String?: [(path: String, match: NamePattern.Match)]] = [:]
    var refused: [RefusedFrame] = []
    for path in pictures {
      if let match = pattern.match(source.name + "/" + PictureNames.stem(of: path)) {
        sessions[match.group, default: []].append((path, match))
      } else {
        refused.append(
          RefusedFrame(source: path, reason: "the name is not \(pattern), a file's suffix aside", kind: .otherName))
      }
    }
    var orders = sessions.sorted { ($0.key ?? "") < ($1.key ?? "") }.map { session, files in
      Order(files, in: session, by: pattern, source)
    }
    if orders.isEmpty { orders = [Order()] }
    orders[0].refused += refused
    return orders
  }

  /// Returns files in the order of the numbers in their names; nil unless their names have one counter.
  static func order(of frames: [Frame]) -> [Frame]? {
    guard let counter = try? NameCounter(of: frames.map(\.source)), counter.refused.isEmpty,
      case let places = frames.compactMap({ counter.places[$0.source] }), places.count == frames.count,
      Set(places).count == places.count
    else { return nil }
    return zip(places, frames).sorted { $0.0 < $1.0 }.map(\.1)
  }
}

extension NumberedFormat.Order {
  fileprivate init(_ counter: NameCounter) {
    places = counter.places.map { (path: $0, place: $1) }
    (refused, warnings) = (counter.refused, counter.warnings)
  }

  /// - Parameter files: with what the pattern reads in their names.
  fileprivate init(
    _ files: [(path: String, match: NamePattern.Match)], in session: String?, by pattern: NamePattern,
    _ source: BatchSource
  ) {
    self.session = session
    if !pattern.hasTime {
      let lowest = files.compactMap(\.match.sequence).min() ?? 0
      places = files.map { ($0.path, ($0.match.sequence ?? lowest) - lowest) }
      return
    }
    let zone = source.options.timeZone ?? ZoneRules(offset: "UTC")
    var timed: [(path: String, instant: Int64, sequence: Int64)] = []
    for file in files {
      if let time = NamedTime(file.match, zone: zone), let instant = time.instants.first {
        timed.append((file.path, instant, time.sequence ?? 0))
      } else {
        refused.append(RefusedFrame(source: file.path, reason: "the name tells a time that does not exist"))
      }
    }
    timed.sort { ($0.instant, $0.sequence, $0.path) < ($1.instant, $1.sequence, $1.path) }
    var place: Int64 = -1
    for (index, file) in timed.enumerated() {
      let isSame =
        index > 0 && file.instant == timed[index - 1].instant && file.sequence == timed[index - 1].sequence
      if !isSame { place += 1 }
      places.append((file.path, place))
    }
  }
}
