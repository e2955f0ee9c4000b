// Plays the events of a recording. Each event that changes a picture makes a frame.

import JSON

struct RRWebPlayer {
  private let text: StreamContents
  private let limits: Limits
  /// The sizes of the lowest images, by the offsets of their literals; nil for a literal that is no image.
  private var sizes: [Int: PixelSize?] = [:]

  init(text: StreamContents, limits: Limits) { (self.text, self.limits) = (text, limits) }

  /// Returns the sessions of a text; none if it has no picture.
  ///
  /// - Throws: ``BadBatch`` for too many sessions; ``DiskError``.
  mutating func drafts(of reader: RRWebReader) throws -> [BatchDraft] {
    var drafts: [BatchDraft] = []
    for recording in reader.recordings {
      drafts += try self.drafts(of: recording)
      try reader.requireFewSessions(drafts.count)
    }
    if !drafts.isEmpty { drafts[0].refused = reader.refused + drafts[0].refused }
    return drafts
  }

  /// Returns the session of the screen, and one for each canvas.
  private mutating func drafts(of recording: RRWebRecording) throws -> [BatchDraft] {
    var screen = draft(recording.session)
    var stack = RRWebStack()
    // The screen, where an image does not state its own area.
    var area: RRWebArea?
    var canvases: [(id: Int64, window: String?, draft: BatchDraft)] = []
    var indices: [Int64: Int] = [:]
    /// The places of the frames in the text, by name.
    var places: [String: Int] = [:]
    // Events of equal instants keep the order of the text.
    let order = recording.entries.indices.sorted {
      (recording.entries[$0].event.timeMs, $0) < (recording.entries[$1].event.timeMs, $1)
    }
    for place in order {
      let entry = recording.entries[place]
      places[entry.name] = place
      if entry.event.isLost { stack.loseTrack() }
      screen.refused += entry.event.refused.map { RefusedFrame(source: entry.name, reason: $0) }
      area = entry.event.screen ?? area
      entry.event.page?.add(to: &screen.pages)
      if let label = entry.event.label { screen.labels.append(label) }
      screen.pointers.add(entry.event.pointers, in: (stack.images.first?.area ?? area)?.space ?? .pixels)
      if let canvas = entry.event.canvas {
        let index = indices[canvas.id] ?? canvases.count
        if index == canvases.count {
          indices[canvas.id] = index
          canvases.append((canvas.id, entry.window, draft(recording.session, canvas: canvas.id)))
        }
        guard canvases[index].window == entry.window else {
          canvases[index].draft.refused.append(
            RefusedFrame(source: entry.name, reason: "canvas \(canvas.id) of another window"))
          continue
        }
        canvases[index].draft.frames.append(
          Frame(source: entry.name, path: StreamContents.name(ofText: canvas.literal), timeMs: entry.event.timeMs))
      }
      do {
        guard try stack.apply(entry.event.changes) else { continue }
        // Frames beyond the limit are only counted.
        let isCounted = screen.frames.count >= limits.frames
        screen.frames.append(
          Frame(
            source: entry.name,
            paths: isCounted ? [] : stack.images.map { StreamContents.name(ofText: $0.literal) },
            timeMs: entry.event.timeMs, look: isCounted ? Self.image : try look(of: stack)))
      } catch let error as JSONError {
        screen.refused.append(RefusedFrame(source: entry.name, reason: error.description))
      }
    }
    // A page with a canvas has images that are no screenshots.
    let isScreen = !screen.frames.isEmpty || canvases.isEmpty && !screen.refused.isEmpty
    // Recorders write the events of several windows one after the other.
    let isListed = Set(recording.entries.map(\.window)).count == 1
    return ((isScreen ? [screen] : []) + canvases.map(\.draft)).map { draft in
      var draft = draft
      (draft.isListed, draft.labels) = (isListed, screen.labels)
      if isListed { draft.frames.sort { (places[$0.source] ?? 0) < (places[$1.source] ?? 0) } }
      return draft
    }
  }

  private static let image = FrameComposition(content: .image(nil), masks: .none)

  private func draft(_ session: String?, canvas: Int64? = nil) -> BatchDraft {
    var draft = BatchDraft()
    draft.defaultCapture = .onChange
    draft.key = canvas.map { "canvas\($0)" }
    draft.session = session.map { session in draft.key.map { "\(session).\($0)" } ?? session }
    return draft
  }

  private mutating func look(of stack: RRWebStack) throws -> FrameComposition {
    try stack.look(limits) { literal in
      if let known = sizes[literal.lowerBound] { return known }
      let size = try text.imageSize(ofText: literal)
      sizes[literal.lowerBound] = .some(size)
      return size
    }
  }
}

extension StreamContents {
  /// Maximum bytes to search for the header of an image. Profiles and EXIF, of up to 64 KiB each, may precede it.
  private static let headerBytes = 256 << 10

  /// Returns the size of the image in a base64 literal, in pixels; nil if it is no image.
  fileprivate func imageSize(ofText literal: Range<Int>) throws -> PixelSize? {
    let isCut = literal.count > Self.headerBytes
    var bytes = try bytes(literal.prefix(Self.headerBytes))
    if isCut {
      // The last escape may be incomplete.
      if let escape = bytes.suffix(6).firstIndex(of: UInt8(ascii: "\\")) { bytes.removeSubrange(escape...) }
      bytes.append(UInt8(ascii: "\""))
    }
    guard let text = try? JSONParser.parse(bytes).string,
      let file = (0..<(isCut ? 4 : 1)).lazy.compactMap({ Base64.image(String(text.dropLast($0))) }).first,
      let size = ImageKind(of: file)?.size(of: file)
    else { return nil }
    return PixelSize(width: size.width, height: size.height)
  }
}
