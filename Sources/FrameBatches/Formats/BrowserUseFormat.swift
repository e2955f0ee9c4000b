// browser-use, an agent that uses a browser: its history, {"history":[{"model_output":{"action":[{"click":{"index":3}}]},"result":[…],
// "state":{"url":…,"title":…,"screenshot":<base64>},"metadata":{"step_start_time":<unix seconds>,"step_end_time":…}}]}, in a file of any name.
// Newer versions write `screenshot_path` instead: the pictures lie beside the history, in `screenshots/`.

import FileSystem
import JSON

package enum BrowserUseFormat: BatchFormat {
  package static let name = "browser-use history"

  /// Bytes of a text in which the key of the list is.
  private static let startBytes = 256
  /// Files of a folder that are looked into.
  private static let mostFiles = 64

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    let contents = source.contents
    guard source.options.times == nil else { return nil }
    if let text = contents.text {
      guard try mayBeHistory(text.bytes(0..<min(text.count, startBytes))),
        let history = try BrowserUseHistory(text, named: source.name, limits)
      else { return nil }
      let draft = try history.draft { _ in .missing }
      guard draft.frames.isEmpty else { return [draft] }
      throw withoutPictures(history, source)
    }
    let files = contents.names.filter { $0.hasSuffix(".json") }
    guard (1...mostFiles).contains(files.count) else { return nil }
    let candidates = try files.filter { try mayBeHistory(contents.start(of: $0, count: startBytes) ?? []) }
    let pictures = contents.names.filter(PictureNames.isPicture)
    var found: [(file: String, text: StreamContents, history: BrowserUseHistory)] = []
    for file in candidates {
      switch try contents.contents(of: file, limit: limits.frameBytes) {
      case .bytes(let bytes)?:
        let text = StreamContents(.memory(bytes))
        if let history = try BrowserUseHistory(text, named: lastComponent(of: file), limits) {
          found.append((file, text, history))
        }
      case .refused(let refusal)? where pictures.isEmpty:
        throw BadBatch("read", file, "\(refusal)", advice: "give the file itself, if its pictures are in it")
      case .refused?, nil: break
      }
    }
    guard let (file, text, history) = found.first else { return nil }
    guard found.count == 1 else {
      throw BadBatch(
        "read", source.name, "\(found.count) histories of browser-use",
        advice: "give each with its pictures as a batch of its own, or name a file whose pictures are in it")
    }
    let places = BrowserUsePictures(pictures, beside: file)
    var draft = try history.draft { path in try places.place(of: path, in: contents) }
    guard !draft.frames.isEmpty else {
      if pictures.isEmpty { throw withoutPictures(history, source) }
      return nil
    }
    guard source.isRead(by: draft.frames.count, of: pictures) else { return nil }
    if history.hasPictures { draft.contents = text }
    let known = Set(draft.frames.flatMap(\.paths)).union(draft.sideFiles)
    draft.refused += pictures.filter { !known.contains($0) }.map {
      RefusedFrame(source: $0, reason: "no picture of a step", kind: .otherName)
    }
    draft.sideFiles.formUnion(contents.names.filter { !PictureNames.isPicture($0) })
    return [draft]
  }

  private static func mayBeHistory(_ start: [UInt8]) -> Bool {
    TextDocument.isJSON(start) && String(decoding: start, as: UTF8.self).contains("\"history\"")
  }

  private static func withoutPictures(_ history: BrowserUseHistory, _ source: BatchSource) -> BadBatch {
    guard let path = history.firstPath else {
      return BadBatch(
        "read", source.name, "a history of browser-use without pictures", advice: "record with use_vision")
    }
    return BadBatch(
      "read", source.name, "a history of browser-use whose pictures lie elsewhere: \(path.shortened(to: 255))",
      advice: "put the history beside their folder, screenshots/, and give the folder of both")
  }
}

/// The pictures of a folder, by their names.
private struct BrowserUsePictures {
  /// Sides of the picture that browser-use writes for an empty page, in pixels.
  static let emptySide = 4

  enum Place {
    case file(String)
    /// The picture of an empty page.
    case empty(String)
    case missing
  }

  private let folder: Substring
  private let names: [String: [String]]

  init(_ pictures: [String], beside file: String) {
    folder = file.dropLast(lastComponent(of: file).count)
    names = Dictionary(grouping: pictures, by: lastComponent(of:))
  }

  /// - Parameter path: as the history has it, in the file system of the agent. It is compared with names, and never opened.
  func place(of path: String, in contents: any BatchContents) throws -> Place {
    let parts = path.split { $0 == "/" || $0 == "\\" }.suffix(2)
    let all = names[parts.last.map(String.init) ?? ""] ?? []
    let near = all.filter { $0 == folder + parts.joined(separator: "/") }
    guard let name = near.first ?? (all.count == 1 ? all[0] : nil) else { return .missing }
    guard let size = try contents.pictureSize(of: name), max(size.width, size.height) <= Self.emptySide else {
      return .file(name)
    }
    return .empty(name)
  }
}

/// The steps of an agent.
private struct BrowserUseHistory {
  private struct Step {
    let source: String
    let startMs: Int64?
    let endMs: Int64?
    /// The place of a picture in base64.
    let picture: Range<Int>?
    let path: String?
    let actions: String
    let errors: [String]
    let page: (address: String, title: String?)?
  }

  private var steps: [Step] = []
  private var broken: [RefusedFrame] = []
  /// Those that an end can be, in unix milliseconds.
  private let instants: Range<Int64>

  var hasPictures: Bool { steps.contains { $0.picture != nil } }
  var firstPath: String? { steps.lazy.compactMap(\.path).first }

  /// - Returns: nil for another text.
  init?(_ text: StreamContents, named name: String, _ limits: Limits) throws {
    var pieces = 0
    var steps: [Step] = []
    var broken: [RefusedFrame] = []
    try RecordScanner.scan(text, limits: limits) { piece in
      let source = "\(name)#\(pieces)"
      pieces += 1
      guard pieces <= limits.entries else {
        throw BadBatch("read", name, "more than \(limits.entries) steps", advice: Limits.advice("entries"))
      }
      do {
        switch piece {
        case .event(let skeleton, _):
          let step = try skeleton.parsed()
          if Self.isStep(step) { steps.append(try Self.step(step, source, in: text)) }
        case .record: break
        case .broken(let offset, let reason): throw JSONError("\(reason) at byte \(offset)")
        }
      } catch let error as JSONError {
        broken.append(RefusedFrame(source: source, reason: error.description, kind: .record))
      }
      return !steps.isEmpty
    }
    guard !steps.isEmpty else { return nil }
    (self.steps, self.broken, instants) = (steps, broken, limits.instants)
  }

  private static func isStep(_ json: JSONValue) -> Bool {
    json.object?["state"]?.object != nil && json.object?["model_output"] != nil && json.object?["result"] != nil
  }

  private static func step(_ json: JSONValue, _ source: String, in text: StreamContents) throws -> Step {
    let state = json.object?["state"]
    let metadata = json.object?["metadata"]?.object
    let actions = json.object?["model_output"]?.object?["action"]?.array ?? []
    let results = json.object?["result"]?.array ?? []
    let picture = LocatedText(state?.object?["screenshot"]).flatMap { located -> Range<Int>? in
      // The picture of an empty page is a short text.
      let empty = located.text.flatMap(Base64.image)
      let size = empty.flatMap { bytes in ImageKind(of: bytes)?.size(of: bytes) }
      let isEmpty = size.map { max($0.width, $0.height) <= BrowserUsePictures.emptySide } ?? false
      return located.mayBeImage && !isEmpty ? located.range : nil
    }
    return Step(
      source: source, startMs: milliseconds(metadata?["step_start_time"]),
      endMs: milliseconds(metadata?["step_end_time"]), picture: picture, path: state?.text("screenshot_path"),
      actions: actions.prefix(mostActions).compactMap(Self.text).joined(separator: "; "),
      errors: results.compactMap { $0.text("error") },
      page: try address(state?.object?["url"], in: text).map { ($0, state?.text("title")) })
  }

  /// Actions of one step that are named.
  private static let mostActions = 10

  private static func milliseconds(_ seconds: JSONValue?) -> Int64? {
    guard case .number(let text)? = seconds else { return nil }
    return UnixTime.milliseconds(ofSeconds: text)
  }

  /// Returns an action's name, and the element, place or page it is for. All else may be secret.
  private static func text(of action: JSONValue) -> String? {
    guard let (name, arguments) = action.object?.first(where: { $0.key != "interacted_element" }) else { return nil }
    let index = arguments.object?["index"]?.integer.map { " \($0)" } ?? ""
    let page = arguments.text("url").flatMap { PageView(timeMs: 0, address: $0) }.map { " \($0.name)" } ?? ""
    return AgentAction.text(name, at: arguments.object ?? [:]) + index + page
  }

  /// Maximum bytes of an address.
  private static let addressBytes = 64 << 10

  private static func address(_ value: JSONValue?, in text: StreamContents) throws -> String? {
    guard let located = LocatedText(value), located.range.count <= addressBytes else { return nil }
    // A skeleton has short texts only.
    return try located.text ?? JSONParser.parse(text.bytes(located.range)).string
  }

  /// Returns the frames and labels.
  ///
  /// - Parameter place: finds the picture of a path.
  func draft(_ place: (String) throws -> BrowserUsePictures.Place) throws -> BatchDraft {
    var draft = BatchDraft()
    (draft.isListed, draft.defaultCapture, draft.refused) = (true, .onChange, broken)
    var address = ""
    for step in steps {
      if let startMs = step.startMs {
        // The step is the later one: a film has one chapter at an instant.
        if let page = step.page.flatMap({ PageView(timeMs: startMs, address: $0.address) }), page.name != address {
          address = page.name
          let data = step.page?.title.map { JSONValue.object(["title": .string($0)]) }
          let label = Label(timeMs: startMs, kind: Label.Kind.page, text: page.name, data: data)
          if let label { draft.labels.append(label) }
        }
        addLabels(of: step, from: startMs, to: &draft)
      }
      guard let (source, path) = try picture(of: step, place, &draft) else { continue }
      guard let startMs = step.startMs else {
        draft.refused.append(RefusedFrame(source: source, reason: "its step tells no time", kind: .record))
        continue
      }
      draft.frames.append(Frame(source: source, path: path, timeMs: startMs))
    }
    let lastMs = draft.frames.map(\.timeMs).max() ?? 0
    draft.endMs = steps.compactMap(\.endMs).filter { $0 > lastMs && instants.contains($0) }.max()
    return draft
  }

  private func addLabels(of step: Step, from startMs: Int64, to draft: inout BatchDraft) {
    let level: Label.Level? = step.errors.isEmpty ? nil : .error
    if !step.actions.isEmpty {
      let label = Label(
        timeMs: startMs, endMs: step.endMs, kind: Label.Kind.step, text: step.actions, level: level)
      if let label { draft.labels.append(label) }
    }
    for error in step.errors {
      let label = Label(
        timeMs: step.endMs ?? startMs, kind: Label.Kind.error, text: LabelText.firstLine(of: error), level: level)
      if let label { draft.labels.append(label) }
    }
  }

  /// Returns the name and the place of a step's picture; nil if it has none.
  private func picture(
    of step: Step, _ place: (String) throws -> BrowserUsePictures.Place, _ draft: inout BatchDraft
  ) throws -> (source: String, path: String)? {
    if let picture = step.picture { return (step.source, StreamContents.name(ofText: picture)) }
    guard !hasPictures, let path = step.path else { return nil }
    switch try place(path) {
    case .file(let name): return (lastComponent(of: name), name)
    case .empty(let name): draft.sideFiles.insert(name)
    case .missing:
      draft.refused.append(RefusedFrame(source: path.shortened(to: 255), reason: "missing", kind: .record))
    }
    return nil
  }
}
