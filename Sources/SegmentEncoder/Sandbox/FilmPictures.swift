// The pictures of a film, decoded right here or in a process of its own.

/// How a picture of a video is wanted for coding: without what was added to make its sides even, upright, not too large.
struct VideoPictureForm: Equatable {
  /// Of the picture as it is stored, before it is turned.
  let size: PixelSize
  let quarterTurns: Int
  /// No side is longer; nil for any length.
  let maxSide: Int?
}

/// A film's pictures in the order they are shown; nil where there is none at an instant.
protocol FilmPictures: AnyObject {
  func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture?
}

/// A film that is decoded right here.
final class LocalFilm: FilmPictures {
  private let pictures: VideoPictures
  private let converter = PictureConverter()

  init(_ file: any ByteSource, name: String, track: Int, keyDTS: Int64?, limits: Limits) throws {
    let reader = try MP4Reader(file)
    guard (0..<reader.trackCount).contains(track) else { throw BadSession(name, "no such track") }
    if let keyDTS { try reader.seek(toKeyFrameAt: keyDTS, of: track) }
    pictures = try VideoPictures(reader, track: track, limits: limits)
  }

  func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture? {
    guard let decoded = try pictures.picture(at: pts) else { return nil }
    guard (1...decoded.width).contains(form.size.width), (1...decoded.height).contains(form.size.height) else {
      throw BadSession("", "a picture of another size than was to be expected")
    }
    if decoded.isHighDynamicRange {
      throw BadSession("", "high dynamic range (PQ or HLG)", advice: "make it SDR first")
    }
    decoded.crop(width: form.size.width, height: form.size.height)
    return try Picture(
      adopting: converter.planar420(ofVideo: decoded, quarterTurns: form.quarterTurns, maxSide: form.maxSide))
  }
}

/// A film that is decoded in a process of its own. For one thread.
final class SandboxedFilm: FilmPictures {
  private let reader: VideoReader
  private let decoders: DecoderHost
  private let file: any ByteSource
  private let name: String
  private let isCancelled: () -> Bool
  private var decoder: DecoderProcess?

  init(
    _ reader: VideoReader, _ decoders: DecoderHost, _ file: any ByteSource, _ name: String,
    _ isCancelled: @escaping () -> Bool
  ) {
    self.reader = reader
    self.decoders = decoders
    self.file = file
    self.name = name
    self.isCancelled = isCancelled
  }

  deinit { if let decoder { decoders.keep(decoder, for: reader.owner) } }

  func open(track: Int, keyDTS: Int64?) throws {
    decoder = try decoders.decoder(for: reader.owner, isLimited: false)
    _ = try ask(.openFilm) { question in
      question.put(track)
      question.put(keyDTS.map { Int($0) }) { $0.put($1) }
    }
  }

  func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture? {
    guard let slots = decoder?.slots else { throw BadSession(name, "its decoder is gone") }
    let (slot, use) = slots.free()
    var written: Int?
    defer { slots.note(slot, bytes: written) }
    var answer = try ask(.filmPicture) { question in
      question.put(slot)
      question.put(Int(pts))
      question.put(form)
    }
    do {
      guard try answer.bool() else {
        written = 0
        return nil
      }
      let layout = try answer.layout(decoders.limits, bytes: slots.size)
      written = layout.bytes
      return try Picture(planes: slots, slot, use, layout)
    } catch let nonsense as WireReader.Nonsense {
      throw reader.failure(name, decoders, nonsense)
    }
  }

  private func ask(_ request: DecoderChild.Request, _ put: (inout WireWriter) -> Void) throws -> WireReader {
    guard let decoder else { throw BadSession(name, "its decoder is gone") }
    do {
      return try reader.ask(decoder, decoders, request, about: file, name, isCancelled, put)
    } catch {
      self.decoder = nil
      let ended = try decoders.end(decoder, after: error)
      throw (ended as? VideoReader.Refusal)?.error ?? reader.failure(name, decoders, ended)
    }
  }
}
