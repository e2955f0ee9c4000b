// An archive is taken apart by a decoder's process: it asks for the file's bytes, and hands out what is in it.

import FileSystem
import FrameBatches
import Glibc
import JSON

enum ArchiveUnpacking {
  private enum Outcome: Int, WireValue { case whole, bad, outOfMemory }
  private enum Kind: Int, WireValue { case stream, file, part, refused }

  /// A reason goes into logs and manifests; a longer one is shortened to so many bytes.
  private static let reasonBytes = 1_024

  // MARK: - In the worker

  /// Reads an archive.
  ///
  /// - Returns: what is in it, and the process that took it apart.
  package static func contents(
    reading descriptor: Int32, name: String, limits: Limits, decoders: DecoderForkServer,
    isCancelled: @escaping () -> Bool
  ) throws -> (ArchiveContents, DecoderProcess) {
    do {
      return try contents(of: descriptor, name, limits, decoders, isCancelled)
    } catch is DecoderFailure where ArchiveFile(descriptor).size != nil {
      // Again, in a fresh process: the machine may have stood still. A pipe cannot be read again.
    } catch let failure as DecoderFailure {
      throw bad(name, failure, decoders)
    }
    do {
      return try contents(of: descriptor, name, limits, decoders, isCancelled)
    } catch let failure as DecoderFailure {
      throw bad(name, failure, decoders)
    }
  }

  private static func bad(_ name: String, _ failure: DecoderFailure, _ decoders: DecoderForkServer) -> any Error {
    let cause =
      switch failure {
      case .late: "reading it takes more than \(decoders.limits.decodeSeconds) s"
      case .readLimitExceeded: "the archive reader reads past the end again and again"
      case .crashed(let how): "the archive reader crashed (\(how))"
      case .gone: "the archive reader ended"
      }
    return BadBatch("read", name, cause, advice: "pack it again, with tar or zip")
  }

  private static func contents(
    of descriptor: Int32, _ name: String, _ limits: Limits, _ decoders: DecoderForkServer,
    _ isCancelled: @escaping () -> Bool
  ) throws -> (ArchiveContents, DecoderProcess) {
    var contents = ArchiveContents(limits: limits, fileBytes: ArchiveContents.size(of: descriptor))
    let file = ArchiveFile(descriptor)
    var exchange = DecoderExchange()
    exchange.isCancelled = isCancelled
    exchange.inputBytes = file.readLimit
    exchange.input = { offset, count in
      guard file.canRead(at: offset) else { throw DecoderFailure.malformed }
      var outcome = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
        outcome = file.read(at: offset, into: UnsafeMutableRawBufferPointer(bytes))
        filled = max(0, outcome)
      }
      guard outcome >= 0 else { throw DiskError("read", name, code: Int32(-outcome)) }
      return bytes
    }
    exchange.output = { message in
      guard try add(&message, to: &contents) else { throw DecoderFailure.malformed }
    }
    let decoder = try decoders.decoder(for: nil)
    do {
      var question = WireWriter()
      question.put(DecoderChild.Request.unpack, file.size)
      var answer = try decoder.ask(question.framed, seconds: decoders.limits.decodeSeconds, exchange)
      switch try answer.read(Outcome.self) {
      case .whole:
        guard contents.isWhole else { throw DecoderFailure.malformed }
        return (contents, decoder)
      case .outOfMemory: throw DecoderOutOfResources()
      case .bad:
        let (cause, advice): (String, String) = (try answer.read(), try answer.read())
        throw BadBatch(
          "read", name, cause.shortened(to: reasonBytes), advice: advice.shortened(to: reasonBytes))
      }
    } catch {
      throw try decoders.end(decoder, after: error)
    }
  }

  private static func add(_ message: inout WireReader, to contents: inout ArchiveContents) throws -> Bool {
    switch try message.read(Kind.self) {
    case .stream: return contents.add(.stream)
    case .file: return contents.add(.file(try message.read(), size: try message.read()))
    case .part: return try message.withBytes { !$0.isEmpty && contents.add(.part($0)) }
    case .refused:
      let (source, reason): (String, String) = (try message.read(), try message.read())
      return contents.add(
        .refused(RefusedFrame(source: source.shortened(to: 4_096), reason: reason.shortened(to: 255))))
    }
  }

  // MARK: - In the decoder

  /// - Parameter size: bytes of the file; nil for a pipe.
  package static func answer(on channel: DecoderChannel, size: Int?, limits: Limits) {
    let input = ArchiveInput(size: size) { channel.input(at: $0, into: $1) }
    do {
      try Archive.unpack(input, name: "", limits: limits) { item in
        switch item {
        case .stream: channel.output(Kind.stream)
        case .file(let name, let size): channel.output(Kind.file, name, size)
        case .part(let bytes): channel.output(bytes, behind: Kind.part)
        case .refused(let frame): channel.output(Kind.refused, frame.source, frame.reason)
        }
      }
      channel.answer(Outcome.whole)
    } catch let bad as BadBatch {
      channel.answer(Outcome.bad, bad.cause, bad.advice)
    } catch {
      // The input comes from the worker, so no other error than a lack of memory is left.
      channel.answer(Outcome.outOfMemory)
    }
  }
}

extension DecoderForkServer: ArchiveUnpacker {
  /// The process that takes an archive apart decodes its pictures, too: they are the same session's.
  package func unpack(
    _ descriptor: Int32, name: String, limits: Limits, isCancelled: @escaping () -> Bool
  ) throws -> UnpackedArchive {
    let (contents, decoder) = try ArchiveUnpacking.contents(
      reading: descriptor, name: name, limits: limits, decoders: self, isCancelled: isCancelled)
    return (
      contents,
      { [self] session in
        if let session { keep(decoder, for: session.description) } else { _ = try? end(decoder) }
      }
    )
  }
}
