import Encoding
import JSON

/// A published session as a contact sheet takes it: what can be read of it, and what cannot.
struct SheetSession {
  package let directory: SessionDirectory
  /// In the order of their starts; of one segment at least there is a manifest.
  package let pieces: [ContactSheetPlan.Piece]
  /// Frames that could not be decoded when the session was encoded.
  package let refused: Int
  /// Segments whose manifests are gone, or of no use.
  package let lost: [Problem]
  let missingParts: [Problem]

  /// - Throws: ``BadSession`` when there is no segment that can be told of.
  init(at path: String, decoders: DecoderForkServer? = nil) throws {
    directory = try SessionDirectory(at: path, decoders: decoders)
    var pieces: [ContactSheetPlan.Piece] = []
    var lost: [Problem] = []
    var refused = 0
    let starts = try directory.publishedStarts()
    for startMs in starts {
      do {
        let (segment, json) = try directory.soundManifest(startMs)
        pieces.append(.segment(segment))
        refused += json.object?["refused"]?.array?.count ?? 0
      } catch let bad as BadSession {
        lost.append(Problem(file: SegmentName.manifest(startMs), what: bad.cause))
        pieces.append(.lost(file: SegmentName.video(startMs), startMs: startMs))
      } catch let damage as DamagedOutput {
        lost.append(Problem(file: SegmentName.manifest(startMs), what: damage.cause))
        pieces.append(.lost(file: SegmentName.video(startMs), startMs: startMs))
      }
    }
    for startMs in try Self.vanished(from: directory, besides: Set(starts)) {
      let file = SegmentName.video(startMs)
      lost.append(Problem(file: file, what: "listed in session.json, but it has no manifest"))
      pieces.append(.lost(file: file, startMs: startMs))
    }
    let segments = pieces.compactMap(\.segment)
    guard !segments.isEmpty else {
      if let first = lost.first { throw BadSession(path + "/" + first.file, first.what) }
      throw BadSession(path, "no published segment", advice: "name a directory OUTPUT/SESSION")
    }
    self.pieces = pieces.sorted { $0.startMs < $1.startMs }
    self.refused = refused
    self.lost = lost
    missingParts = SessionOrder.missingParts(of: segments)
  }

  /// Segments that session.json lists, and whose manifests are gone.
  private static func vanished(from directory: SessionDirectory, besides starts: Set<Int64>) throws -> [Int64] {
    guard let text = try directory.bytes(of: SessionView.jsonFile, limit: SessionView.maximumBytes) else { return [] }
    return SessionView.videos(in: text, of: directory.session)
      .compactMap { SegmentName.start(ofVideo: $0) }.filter { !starts.contains($0) }
  }
}
