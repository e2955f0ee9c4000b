import FileSystem
import FrameBatches

/// A film that a sandboxed process decodes. For one thread.
final class SandboxedFilm: FilmPictures {
  private let reader: VideoReader
  private let decoders: DecoderForkServer
  private let file: any ByteSource
  private let name: String
  private let limits: Limits
  private let track: Int
  private let keyDTS: Int64?
  private let cancellation: Cancellation
  /// The process that has the film open; nil before the first picture, and after a failure.
  private var decoder: DecoderProcess?

  init(
    _ reader: VideoReader, _ decoders: DecoderForkServer, _ file: any ByteSource, _ name: String, _ limits: Limits,
    track: Int, keyDTS: Int64?, _ cancellation: Cancellation
  ) {
    (self.reader, self.decoders, self.file, self.name, self.limits) = (reader, decoders, file, name, limits)
    (self.track, self.keyDTS, self.cancellation) = (track, keyDTS, cancellation)
  }

  deinit { if let decoder { decoders.keep(decoder, for: reader.owner) } }

  func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture? {
    do { return try retryingOnce { try once(pts, form) } } catch { throw reader.failure(name, decoders, error) }
  }

  private func once(_ pts: Int64, _ form: VideoPictureForm) throws -> Picture? {
    let decoder = try opened()
    let slots = decoder.slots
    let slot = slots.free()
    var written: Int?
    defer { slots.recordWrite(slot, bytes: written) }
    let request = FilmPictureRequest(slot: slot, pts: pts, form: form)
    return try ask(decoder, request) { layout in
      guard let layout else {
        written = 0
        return nil
      }
      try layout.require(limits, bytes: slots.size)
      guard layout.size == form.result else { throw DecoderFailure.malformed }
      written = layout.bytes
      return try Picture(planes: slots, slot, layout)
    }
  }

  private func opened() throws -> DecoderProcess {
    if let decoder { return decoder }
    let decoder = try decoders.decoder(for: reader.owner, isLimited: false)
    try ask(decoder, FilmRequest(track: track, keyDTS: keyDTS)) { _ in }
    self.decoder = decoder
    return decoder
  }

  private func ask<Request: VideoRequest, R>(
    _ decoder: DecoderProcess, _ request: Request, read: (Request.Answer) throws -> R
  ) throws -> R {
    do {
      return try read(try reader.ask(decoder, decoders, request, about: file, name, cancellation))
    } catch {
      self.decoder = nil
      let ended = try decoders.end(decoder, after: error)
      throw (ended as? VideoReader.Refusal)?.error ?? ended
    }
  }
}
