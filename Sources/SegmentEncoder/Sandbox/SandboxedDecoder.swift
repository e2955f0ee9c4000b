// Decodes the frames of one batch in a process of their own. A decoder that crashes or hangs costs the frame that did it.

import Glibc

/// Where pictures come from.
protocol FrameDecoding: AnyObject {
  /// - Throws: ``RefusedPicture`` when a file is to blame.
  func picture(from files: [[UInt8]], _ look: Look) throws -> DecodedPicture
}

extension PictureDecoder: FrameDecoding {
  func picture(from files: [[UInt8]], _ look: Look) throws -> DecodedPicture {
    try picture(from: files, look, into: nil)
  }
}

/// A decoder had too little memory, or was killed by somebody: the machine's fault, or the picture's.
struct DecoderStarved: Error, CustomStringConvertible {
  var description: String { "a picture could not be decoded: the decoder was killed, or out of memory" }
}

/// For one thread, and one batch: what a stranger's image may have done to a decoder ends with it.
final class SandboxedDecoder: FrameDecoding {
  /// What is said of a picture goes into the manifest, whoever says it.
  private static let (notes, noteBytes) = (8, 255)

  private let host: DecoderHost
  private let profile: Profile?
  private var child: DecoderProcess?

  init(_ host: DecoderHost, _ profile: Profile? = nil) {
    self.host = host
    self.profile = profile
  }

  deinit { if let child { _ = try? host.end(child) } }

  func picture(from files: [[UInt8]], _ look: Look) throws -> DecodedPicture {
    do {
      return try ask(files, look)
    } catch is DecoderFailure {
      // Again, in a fresh process: what crashed the first may have been an earlier frame's doing, or the machine stood still.
    }
    do {
      return try ask(files, look)
    } catch DecoderFailure.late {
      throw RefusedPicture(reason: "decoding takes more than \(host.limits.decodeSeconds) s")
    } catch DecoderFailure.crashed(let how) {
      throw RefusedPicture(reason: "the decoder crashed (\(how))")
    }
  }

  private func ask(_ files: [[UInt8]], _ look: Look) throws -> DecodedPicture {
    let watch = profile?.start(.sandbox)
    let child = try self.child ?? host.fork()
    self.child = child
    do {
      let decoded = try ask(child, files, look)
      if let watch { profile?.add(decoded.work, waitedFor: watch.span) }
      return decoded
    } catch let failure as DecoderFailure {
      self.child = nil
      let ending = try host.end(child)
      guard failure == .gone else { throw failure }
      // Without a signal of its own it is the machine, which was short of something, or somebody who kills processes.
      guard case .signal(let signal) = ending else { throw DecoderStarved() }
      throw DecoderFailure.crashed(signal == SIGXCPU ? "its time was up" : "signal \(signal)")
    }
  }

  private func ask(_ child: DecoderProcess, _ files: [[UInt8]], _ look: Look) throws -> DecodedPicture {
    let (slot, use) = child.slots.free()
    var layout: PlaneLayout?
    // What a refused picture has left there is not known.
    defer { child.slots.note(slot, bytes: layout?.bytes) }
    var question = WireWriter(capacity: files.reduce(4_096) { $0 + $1.count })
    question.put(DecoderChild.Request.decode.rawValue)
    question.put(slot)
    question.put(look)
    question.put(files) { $0.put($1) }
    let answer = try child.ask(question.framed, seconds: host.limits.decodeSeconds)
    do {
      var reader = WireReader(answer)
      switch DecoderChild.Outcome(rawValue: try reader.int()) {
      case .picture:
        let planes = try reader.layout(host.limits, bytes: child.slots.size)
        layout = planes
        let notes = try reader.list { reader throws(WireReader.Nonsense) in try reader.string() }
        return DecodedPicture(
          picture: try Picture(planes: child.slots, slot, use, planes),
          notes: notes.prefix(Self.notes).map { $0.shortened(to: Self.noteBytes) }, work: try reader.work())
      case .refused: throw RefusedPicture(reason: try reader.string().shortened(to: Self.noteBytes))
      case .outOfMemory: throw DecoderStarved()
      case nil: throw WireReader.Nonsense()
      }
    } catch is WireReader.Nonsense {
      throw DecoderFailure.crashed("it answers nonsense")
    }
  }
}
