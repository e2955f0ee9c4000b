// Playwright: a trace, versions 6 to 10, zipped or not: `trace.trace`, `test.trace` and others, and the pictures of its
// screencast below `screencast/` or `resources/`. Each page is a session.

import FileSystem

package enum PlaywrightFormat: BatchFormat {
  package static let name = "Playwright trace"

  /// Older versions have other lines. Newer ones are read with a warning.
  private static let versions: ClosedRange<Int64> = 6...10

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    var screencast = Screencast(source: source, limits: limits)
    var newest: Int64 = 0
    for path in source.contents.names.filter({ $0.utf8.suffix(6).elementsEqual(".trace".utf8) }).sorted() {
      guard let trace = try screencast.trace(path) else { continue }
      guard trace.version >= versions.lowerBound else {
        throw screencast.bad(
          "a Playwright trace of version \(trace.version)", "record it with Playwright 1.38 or later")
      }
      newest = max(newest, trace.version)
      try screencast.add(trace, path)
    }
    guard newest > 0 else { return nil }
    var drafts = try screencast.drafts()
    if newest > versions.upperBound {
      drafts[0].warnings.append("a Playwright trace of version \(newest); the last known is \(versions.upperBound)")
    }
    return drafts
  }
}

/// The frames of all traces of a batch, by page.
private struct Screencast {
  private let source: BatchSource
  private let limits: Limits
  private let names: Set<String>
  private var pages: [String: BatchDraft] = [:]
  private var refused: [RefusedFrame] = []
  /// The pictures of frames.
  private var pictures: Set<String> = []
  private var steps = PlaywrightSteps()
  private var count = 0
  private var traces = 0

  /// Maximum number of pages. Each page is a session.
  private static let maximumPages = 256

  init(source: BatchSource, limits: Limits) {
    (self.source, self.limits) = (source, limits)
    names = Set(source.contents.names)
  }

  func bad(_ cause: String, _ advice: String) -> BadBatch { BadBatch("read", source.name, cause, advice: advice) }

  /// Opens a trace; refuses any other file of such a name, and returns nil.
  mutating func trace(_ path: String) throws -> PlaywrightTrace? {
    switch try source.contents.contents(of: path, limit: limits.frameBytes) {
    case .bytes(let bytes)?:
      if let trace = PlaywrightTrace(bytes, lineLimit: limits.jsonBytes) { return trace }
      refused.append(RefusedFrame(source: path, reason: "no trace: its first line is not of context-options"))
    case .refused(let refusal)?: refused.append(RefusedFrame(source: path, reason: "\(refusal)"))
    case nil: break
    }
    return nil
  }

  /// - Parameter path: of the trace; paths of pictures are relative to its folder.
  mutating func add(_ trace: PlaywrightTrace, _ path: String) throws {
    let folder = path.dropLast(lastComponent(of: path).count)
    traces += 1
    var place = PlaywrightTrace.Place()
    while let line = trace.nextLine(&place, lineLimit: limits.jsonBytes) {
      if case .step = line {} else { count += 1 }
      guard count <= limits.entries else { throw bad("more than \(limits.entries) frames", Limits.advice("entries")) }
      switch line {
      case .frame(let event): try add(event, picture: folder + event.picture)
      case .fault(let reason):
        refused.append(RefusedFrame(source: "\(path):\(place.number)", reason: reason, kind: .record))
      case .step(let type, let members): steps.add(type, members, of: trace)
      }
    }
  }

  private mutating func add(_ event: PlaywrightTrace.Event, picture: String) throws {
    guard pages.count < Self.maximumPages || pages[event.page] != nil else {
      throw bad("more than \(Self.maximumPages) pages", "split the trace")
    }
    guard names.contains(picture) else {
      let missing = RefusedFrame(source: event.picture, reason: "missing", kind: .record)
      pages[event.page, default: BatchDraft()].refused.append(missing)
      return
    }
    pictures.insert(picture)
    pages[event.page, default: BatchDraft()].frames.append(
      Frame(source: lastComponent(of: picture), path: picture, timeMs: event.timeMs))
  }

  func drafts() throws -> [BatchDraft] {
    guard !pages.isEmpty else {
      let why = refused.first.map { "; \($0.source): \($0.reason)" } ?? ""
      throw bad(
        "a Playwright trace without a screencast" + why,
        "record it with screenshots: tracing.start(screenshots=True), or trace: 'on' in the configuration of the tests")
    }
    var drafts = pages.sorted { $0.key < $1.key }.map { key, page in
      var draft = page
      (draft.key, draft.defaultCapture, draft.labels) = (key, .onChange, steps.labels(ofPage: key))
      // The traces of a batch follow each other by name.
      draft.isListed = traces == 1
      return draft
    }
    // A picture of the screencast that no trace names is a lost frame. All other files belong to pages and actions.
    let lost = source.contents.names.filter { isOfScreencast($0) && !pictures.contains($0) }
    drafts[0].refused += refused + lost.map { RefusedFrame(source: $0, reason: "no trace says when it was captured") }
    drafts[0].sideFiles = names
    return drafts
  }

  /// Whether a file is a picture of the screencast, by its folder and name: `<page ID>-<unix ms>.jpeg`.
  private func isOfScreencast(_ path: String) -> Bool {
    let parts = path.split(separator: "/").suffix(2)
    guard parts.count == 2, let name = parts.last, name.hasSuffix(".jpeg") else { return false }
    return parts.first == "screencast" || parts.first == "resources" && name.hasPrefix("page@")
  }
}
