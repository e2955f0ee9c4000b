// Decodes the frames of a batch in a process that serves one session. A decoder that crashes or hangs costs only the frame that
// caused it.

import FileSystem
import FrameBatches
import Glibc
import JSON

/// A decoder of frames.
package protocol FrameDecoding: AnyObject {
  /// - Throws: ``RefusedPicture`` when a file is to blame.
  func picture(from files: [[UInt8]], _ look: FrameComposition) throws -> DecodedPicture
}

extension PictureDecoder: FrameDecoding {
  package func picture(from files: [[UInt8]], _ look: FrameComposition) throws -> DecodedPicture {
    try picture(from: files, look, into: nil)
  }
}

/// A decoder had too little memory, or another process killed it: the machine or the file is to blame.
package struct DecoderOutOfResources: ClassifiedError {
  package var kind: Failure.Kind { .environment }
  package var description: String { "the decoder was killed, or is out of memory" }
}

/// A decoder for one thread, and one batch. An image that compromises it affects its own session only.
final class SandboxedDecoder: FrameDecoding {
  private let host: DecoderForkServer
  private let session: String
  /// The bits that samples of 16 bits use, if the user states them.
  private let sampleBits: Int?
  private let profile: Profile?
  private let cancellation: Cancellation
  private var child: DecoderProcess?

  init(
    _ host: DecoderForkServer, for session: SessionID, _ profile: Profile? = nil, sampleBits: Int? = nil,
    cancellation: Cancellation = .never
  ) {
    self.host = host
    self.session = session.description
    self.sampleBits = sampleBits
    self.profile = profile
    self.cancellation = cancellation
  }

  deinit { if let child { host.keep(child, for: session) } }

  package func picture(from files: [[UInt8]], _ look: FrameComposition) throws -> DecodedPicture {
    do {
      return try retryingOnce { try ask(files, look) }
    } catch DecoderFailure.gone {
      throw DecoderOutOfResources()
    } catch DecoderFailure.late, DecoderFailure.readLimitExceeded {
      throw RefusedPicture(reason: "decoding takes more than \(host.limits.decodeSeconds) s")
    } catch DecoderFailure.crashed(let how) {
      throw RefusedPicture(reason: "the decoder crashed (\(how))")
    }
  }

  private func ask(_ files: [[UInt8]], _ look: FrameComposition) throws -> DecodedPicture {
    let watch = profile?.start(.sandbox)
    let child = try self.child ?? host.decoder(for: session)
    self.child = child
    do {
      let decoded = try ask(child, files, look)
      if let watch { profile?.add(decoded.work, waitedFor: watch.span) }
      return decoded
    } catch let refusal as RefusedPicture {
      throw refusal
    } catch {
      self.child = nil
      throw try host.end(child, after: error)
    }
  }

  private func ask(_ child: DecoderProcess, _ files: [[UInt8]], _ look: FrameComposition) throws -> DecodedPicture {
    let slot = child.slots.free()
    var layout: PlaneLayout?
    // The content that a refused picture left there is unknown.
    defer { child.slots.recordWrite(slot, bytes: layout?.bytes) }
    var message = FrameRequest(slot: slot, look: look, sampleBits: sampleBits, sizes: files.map(\.count)).message
    message.reserveCapacity(files.reduce(message.count) { $0 + $1.count })
    for file in files { message += file }
    var answer = try child.ask(
      message, seconds: host.limits.decodeSeconds, DecoderExchange(cancellation: cancellation))
    switch try answer.read(FrameRequest.Answer.self) {
    case .picture(let planes, let notes, let facts, let work):
      try planes.require(host.limits, bytes: child.slots.size)
      layout = planes
      return DecodedPicture(
        picture: try Picture(planes: child.slots, slot, planes), notes: notes, facts: facts, work: work)
    case .refused(let refusal): throw RefusedPicture(refusal)
    case .outOfMemory: throw DecoderOutOfResources()
    }
  }
}
