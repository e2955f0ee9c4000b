import Encoding
import JSON
import Sessions

/// The readable and the lost segments of a published session.
struct SheetSession {
  let directory: SessionDirectory
  /// In the order of their starts; at least one segment has a manifest.
  let pieces: [ContactSheetPlan.Piece]
  /// The number of frames that could not be decoded when the session was encoded.
  let refused: Int
  /// Segments with missing or damaged manifests.
  let lost: [Problem]

  /// - Throws: ``BadSession`` when no manifest can be read.
  init(at path: String, decoders: DecoderForkServer? = nil) throws {
    directory = try SessionDirectory(at: path, decoders: decoders)
    var pieces: [ContactSheetPlan.Piece] = []
    var lost: [Problem] = []
    var refused = 0
    func lose(_ startMs: Int64, _ problem: Problem) {
      lost.append(problem)
      pieces.append(.init(startMs: startMs, segment: nil))
    }
    let starts = try directory.publishedStarts()
    for startMs in starts {
      do {
        let (segment, json) = try directory.soundManifest(startMs)
        pieces.append(.init(startMs: startMs, segment: segment))
        refused += json.object?["refused"]?.array?.count ?? 0
      } catch let bad as BadSession {
        lose(startMs, Problem(file: SegmentName.manifest(startMs), what: bad.cause))
      } catch let damage as DamagedOutput {
        lose(startMs, Problem(file: SegmentName.manifest(startMs), what: damage.cause))
      }
    }
    let published = Set(starts)
    for file in try directory.listedVideos() {
      guard let startMs = SegmentName.start(ofVideo: file), !published.contains(startMs) else { continue }
      lose(startMs, .withoutManifest(file))
    }
    guard pieces.contains(where: { $0.segment != nil }) else {
      if let first = lost.first { throw BadSession(path + "/" + first.file, first.what) }
      throw BadSession(path, "no published segment", advice: SessionAdvice.naming(insteadOf: path))
    }
    self.pieces = pieces.sorted { $0.startMs < $1.startMs }
    self.refused = refused
    self.lost = lost
  }
}
