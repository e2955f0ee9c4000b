// The pictures of a film, decoded right here or in a process of its own.

import FileSystem
import FrameBatches

/// How a picture of a video is wanted for coding: without what was added to make its sides even, upright, not too large.
package struct VideoPictureForm: Equatable {
  /// Of the picture as it is stored, before it is turned.
  package let size: PixelSize
  package let quarterTurns: Int
  /// No side is longer; nil for any length.
  package let maxSide: Int?

  package init(size: PixelSize, quarterTurns: Int, maxSide: Int?) {
    self.size = size
    self.quarterTurns = quarterTurns
    self.maxSide = maxSide
  }

  /// Of the picture as it is wanted.
  package var result: PixelSize {
    let fitted = size.fitted(maxSide: maxSide)
    return quarterTurns % 2 == 0 ? fitted : PixelSize(width: fitted.height, height: fitted.width)
  }
}

/// A film's pictures in the order they are shown; nil where there is none at an instant.
package protocol FilmPictures: AnyObject {
  func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture?
}

/// A film that is decoded in a process of its own. For one thread.
final class SandboxedFilm: FilmPictures {
  private let reader: VideoReader
  private let decoders: DecoderForkServer
  private let file: any ByteSource
  private let name: String
  private let limits: Limits
  private let track: Int
  private let keyDTS: Int64?
  private let isCancelled: () -> Bool
  /// Has the film open; nil before the first picture, and after a decoder has failed.
  private var decoder: DecoderProcess?

  init(
    _ reader: VideoReader, _ decoders: DecoderForkServer, _ file: any ByteSource, _ name: String, _ limits: Limits,
    track: Int, keyDTS: Int64?, _ isCancelled: @escaping () -> Bool
  ) {
    self.reader = reader
    self.decoders = decoders
    self.file = file
    self.name = name
    self.limits = limits
    self.track = track
    self.keyDTS = keyDTS
    self.isCancelled = isCancelled
  }

  deinit { if let decoder { decoders.keep(decoder, for: reader.owner) } }

  package func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture? {
    do { return try retryingOnce { try once(pts, form) } } catch { throw reader.failure(name, decoders, error) }
  }

  private func once(_ pts: Int64, _ form: VideoPictureForm) throws -> Picture? {
    let decoder = try opened()
    let slots = decoder.slots
    let slot = slots.free()
    var written: Int?
    defer { slots.recordWrite(slot, bytes: written) }
    return try ask(decoder, .filmPicture, slot, pts, form) { answer in
      guard try answer.read(Bool.self) else {
        written = 0
        return nil
      }
      let layout = try answer.layout(limits, bytes: slots.size)
      guard layout.size == form.result else { throw DecoderFailure.malformed }
      written = layout.bytes
      return try Picture(planes: slots, slot, layout)
    }
  }

  private func opened() throws -> DecoderProcess {
    if let decoder { return decoder }
    let decoder = try decoders.decoder(for: reader.owner, isLimited: false)
    try ask(decoder, .openFilm, track, keyDTS) { _ in }
    self.decoder = decoder
    return decoder
  }

  private func ask<each Value: WireValue, R>(
    _ decoder: DecoderProcess, _ request: DecoderChild.Request, _ values: repeat each Value,
    read: (inout WireReader) throws -> R
  ) throws -> R {
    var question = WireWriter()
    question.put(request, file.count, repeat each values)
    do {
      var answer = try reader.ask(decoder, decoders, question, about: file, name, isCancelled)
      return try read(&answer)
    } catch {
      self.decoder = nil
      let ended = try decoders.end(decoder, after: error)
      throw (ended as? VideoReader.Refusal)?.error ?? ended
    }
  }
}
