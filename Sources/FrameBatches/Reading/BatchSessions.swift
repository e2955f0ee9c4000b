// From a path to the sessions of a batch: opens the container, finds its format, and checks the facts in it.

import FileSystem
import Glibc

/// The sessions of a batch. Most formats have one; a trace of a browser has one for each page.
package struct BatchSessions: Sendable {
  /// The name that the batch has in messages.
  package let name: String
  /// One reader for each session; none of a batch without pictures, for those who take one.
  package private(set) var readers: [BatchReader]
  /// The labels of a batch without pictures.
  package private(set) var additions: [LabelAddition] = []
  /// The sessions of the batch that cannot be published.
  package let refused: [RefusedSession]

  init(name: String, readers: [BatchReader], refused: [RefusedSession]) {
    (self.name, self.readers, self.refused) = (name, readers, refused)
  }

  /// The sessions that can be published, or get labels.
  package var sessions: [SessionID] { readers.map(\.batch.session) + additions.map(\.session) }

  /// Continues a trace in the sessions that state none.
  package mutating func continueTrace(of step: TraceParent) {
    for index in readers.indices where readers[index].batch.traceParent == nil {
      readers[index].batch.traceParent = step
    }
  }

  /// Reads a batch: a directory, an archive, or a text.
  ///
  /// - Parameters:
  ///   - path: a directory or a file; `-` reads a file from standard input.
  ///   - name: the name that the producer gave the batch, perhaps with folders before it; nil if the path tells it.
  ///   - files: the images that the batch consists of; then `path` is their directory and only names the batch.
  ///   - folderName: the name of a batch of `files`, with the folders above it; nil for the last component of `path`.
  ///   - options: facts that the batch may not state.
  ///   - unpacker: unpacks archives in another process; nil to unpack trusted archives in this process.
  ///   - cancellation: called before each part of an archive is read.
  /// - Throws: ``BadBatch`` if nothing of it can be published, ``DiskError`` when reading fails, ``Cancelled``.
  package init(
    reading path: String, named name: String? = nil, inFolders folderName: String? = nil, files: [String] = [],
    options: InputOptions = InputOptions(), limits: Limits = Limits(), unpacker: (any ArchiveUnpacker)? = nil,
    cancellation: Cancellation = .never
  ) throws {
    var opened = try OpenedBatch(
      reading: path, named: name, inFolders: folderName, files: files, options, limits, unpacker, cancellation)
    var release = Optional(opened.release)
    defer { release?(nil) }
    if options.takesAnyName || options.target != nil {
      try opened.source.leaveOutFilms(in: files.isEmpty ? DurableFile.resolved(path) : nil, limits: limits)
    }
    try Self.requireOneDescription(opened.source.contents, opened.name)
    try opened.source.takeLabels()
    if let sessions = try BatchSessions(opened, limits: limits) {
      self = sessions
      // A process that has seen several sessions decodes none of them.
      release.take()?(sessions.sessions.count == 1 ? sessions.sessions[0] : nil)
      return
    }
    let unknown = UnknownBatch.explain(opened.source, name: opened.name, limits: limits)
    guard options.takesFew, let few = Self.few(opened, limits: limits, advice: unknown.advice) else { throw unknown }
    self = few
    release.take()?(few.readers.count == 1 ? few.readers[0].batch.session : nil)
  }

  /// Reads a container of which few names have a form; nil if none has one.
  ///
  /// - Parameter advice: on the names that have none.
  private static func few(_ opened: OpenedBatch, limits: Limits, advice: String) -> BatchSessions? {
    let few: [any BatchFormat.Type] = [NamedTimesFormat.self, PlainFormat.self]
    var source = opened.source
    source.takesFew = true
    for format in few {
      guard var found = (try? BatchSessions(source, as: format, name: opened.name, limits: limits)) ?? nil else {
        continue
      }
      for index in found.readers.indices { found.readers[index].batch.adviceOnNames = advice }
      return found
    }
    return nil
  }

  /// Reads a container as the first format that recognises it; nil if none does.
  init?(_ opened: OpenedBatch, limits: Limits) throws {
    for format in FormatList.all {
      guard let sessions = try BatchSessions(opened.source, as: format, name: opened.name, limits: limits) else {
        continue
      }
      self = sessions
      return
    }
    return nil
  }

  /// Reads a container as one format; nil if it has another format.
  ///
  /// - Parameter name: the batch's name in messages.
  package init?(_ source: BatchSource, as format: any BatchFormat.Type, name: String, limits: Limits) throws {
    guard var drafts = try format.read(source, limits: limits), !drafts.isEmpty else { return nil }
    if !source.labels.isEmpty {
      if drafts.count == 1 {
        drafts[0].labels.add(source.labels)
      } else {
        drafts[0].warnings.append("\(BatchSource.labelFile) is not read: the batch has \(drafts.count) sessions")
      }
    }
    if let file = source.options.labels {
      guard drafts.count == 1 else {
        throw BadBatch(
          "read", name, "--labels belongs to one session, and it has \(drafts.count)",
          advice: "leave --labels out, and put labels into batch.json")
      }
      let firstMs = drafts[0].frames.map(\.timeMs).min() ?? 0
      let (labels, note) = file.labels(from: firstMs)
      drafts[0].labels.add(labels)
      drafts[0].warnings += [note].compactMap(\.self)
    }
    if !source.options.takesLabels { for index in drafts.indices { drafts[index].labels = LabelList() } }
    for index in drafts.indices { drafts[index].move(byMs: source.options.clockOffsetMs) }
    if source.options.takesAdditions, drafts.count == 1, LabelAddition.isLabels(drafts[0], as: format) {
      self.init(name: name, readers: [], refused: [])
      additions = [try LabelAddition(drafts[0], of: source, name: name, limits: limits)]
      return
    }
    guard drafts.count <= Limits.maximumSessions else {
      throw BadBatch("read", name, "more than \(Limits.maximumSessions) sessions", advice: "split the batch")
    }
    let others = Self.namesInFolders(of: source.contents, notIn: drafts)
    drafts[0].refused =
      Self.unread(source.contents, butIn: drafts) + drafts[0].refused
      + others.map { RefusedFrame(source: $0, reason: "in a folder of its own", kind: .inFolder) }
    drafts[0].warnings += source.notes + Self.warnings(ofLost: drafts, of: source, limits)
    let frames = drafts.reduce(0) { $0 + $1.frames.count }
    var readers: [BatchReader] = []
    var refused: [RefusedSession] = []
    for (index, draft) in drafts.enumerated() {
      var source = source
      if let text = draft.contents { source.contents = text }
      let session = draft.session ?? source.session.map { name in draft.key.map { "\(name).\($0)" } ?? name }
      do {
        var batch = try Batch(
          draft, of: source, session: session, name: name, limits: limits,
          isLoose: source.contents.isLoose && format != NativeFormat.self && format != SequenceFormat.self
            && draft.videos == nil && draft.pointers.isEmpty)
        let leftOut = CompanionNames.pictures(in: draft.refused, of: drafts).count
        if index == 0 {
          // Files with other names belong to no session.
          (batch.leftOut.ofInput, batch.leftOut.framesBeside) = (leftOut, frames - draft.frames.count)
        } else {
          batch.leftOut.ofSession += leftOut
        }
        if draft.session == nil, let said = source.sessionName {
          if source.options.sessionFrom == nil { batch.namesake = said.path }
          if readers.isEmpty, let warning = said.reading?.warning(batch.session) { batch.warnings.append(warning) }
        }
        guard !readers.contains(where: { $0.batch.session == batch.session }) else {
          throw BadBatch("read", name, "session \(batch.session) is in it twice", advice: "send two batches")
        }
        readers.append(
          BatchReader(batch: batch, format: format.name, contents: source.contents, limits: limits))
      } catch let bad as BadBatch where drafts.count > 1 {
        refused.append(RefusedSession(session: (session ?? "").shortened(to: limits.nameBytes), error: bad))
      }
    }
    guard !readers.isEmpty else { throw refused[0].error }
    self.init(name: name, readers: readers, refused: refused)
  }

  /// Returns the entries of a container that are not read, without those that a list names as frames.
  private static func unread(_ contents: any BatchContents, butIn drafts: [BatchDraft]) -> [RefusedFrame] {
    let refused = contents.refused
    guard refused.contains(where: \.isInFolder) else { return refused }
    let shown = drafts.reduce(into: Set<String>()) { $0.formUnion($1.frames.flatMap(\.paths)) }
    return refused.filter { !$0.isInFolder || !shown.contains($0.source) }
  }

  /// Returns the files in folders that no draft lists.
  private static func namesInFolders(of contents: any BatchContents, notIn drafts: [BatchDraft]) -> [String] {
    let (names, top) = (contents.names, contents.topNames)
    guard names.count > top.count else { return [] }
    let known = drafts.reduce(into: Set(top)) { known, draft in
      known.formUnion(draft.sideFiles)
      known.formUnion(draft.frames.flatMap(\.paths) + draft.refused.map(\.source))
    }
    return names.filter { !known.contains($0) }
  }

  /// Returns a warning if a format leaves out many of the pictures.
  private static func warnings(
    ofLost drafts: [BatchDraft], of source: BatchSource, _ limits: Limits
  ) -> [String] {
    // Names alone do not tell whether a file in a folder shows the picture that is shown.
    let lost = drafts.flatMap(\.refused).filter(\.isPicture)
    let total = lost.count + drafts.reduce(0) { $0 + $1.frames.count }
    guard lost.isMany(of: total) else { return [] }
    let reasons = Dictionary(grouping: lost, by: \.reason)
    guard let most = reasons.values.max(by: { ($0.count, $1[0].source) < ($1.count, $0[0].source) }) else { return [] }
    let advice: String?
    switch most[0].kind {
    case .inFolder: advice = "give a folder as a batch of its own to read it"
    case .otherName:
      advice = NameAdvice(for: source, limits: limits).patternForAll.map { "\($0) reads all names" }
    case .other: advice = source.contents.refused.contains(most[0]) ? source.contents.adviceOnRefused : nil
    case .undecoded, .copy, .record, .sameInstant, .early: advice = nil
    }
    return [
      "\(lost.count) of \(total) pictures are left out; \(most.count) of these, the first \(most[0].source.shortened(to: 255)): "
        + most[0].reason + (advice.map { "; \($0)" } ?? "")
    ]
  }

  /// Refuses a `batch.json` that would be ignored, because its masks would not be painted: with a similar name, in a folder, as a
  /// link, or as one of two.
  private static func requireOneDescription(_ contents: any BatchContents, _ batch: String) throws {
    let refused = contents.refused.filter { NativeFormat.isDescription($0.source) }
    let names = contents.names.filter(NativeFormat.isDescription) + refused.map(\.source)
    guard let name = names.first else { return }
    let isReadable =
      refused.isEmpty && contents.topNames.contains(name) && lastComponent(of: name) == NativeFormat.description
    guard names.count == 1, isReadable else {
      let cause = refused.first?.reason ?? (names.count > 1 ? "not the only batch.json" : "not batch.json")
      throw BadBatch(
        "read", batch, "\(name.shortened(to: 255)) is \(cause)",
        advice: "put one regular file named batch.json beside the frames")
    }
  }
}

/// A session of a batch that cannot be published, while other sessions of the batch can.
package struct RefusedSession: Sendable, Equatable {
  package let session: String
  package let error: BadBatch

  package init(session: String, error: BadBatch) {
    self.session = session
    self.error = error
  }
}
