// A decoder process unpacks an archive: it asks the worker for the file's bytes, and sends back the content.

import FileSystem
import FrameBatches
import Glibc
import JSON

enum ArchiveUnpacking {
  fileprivate enum Kind: Int, WireValue { case stream, file, part, refused }

  /// Unpacks an archive in the decoder, and sends its content.
  static func unpack(
    _ request: UnpackingRequest, on channel: DecoderChannel, limits: Limits
  ) -> UnpackingRequest.Answer {
    let input = unsafe ArchiveInput(size: request.size) { unsafe channel.input(at: $0, into: $1) }
    do {
      try Archive.unpack(input, name: "", limits: limits, takesTorn: request.takesTorn) { item in
        switch item {
        case .stream: channel.output(Kind.stream)
        case .file(let name, let size): channel.output(Kind.file, name, size)
        case .part(let bytes): unsafe channel.output(bytes, after: Kind.part)
        case .refused(let frame): channel.output(Kind.refused, frame.source, frame.reason)
        }
      }
      return .done
    } catch let bad as BadBatch {
      return .bad(cause: bad.cause, advice: bad.advice)
    } catch {
      // The input comes from the worker, so the only other error is a lack of memory.
      return .outOfMemory
    }
  }
}

/// The worker's side.
extension DecoderForkServer: ArchiveUnpacker {
  /// The decoder that unpacks an archive also decodes its pictures: both belong to the same session.
  package func unpack(
    _ descriptor: Int32, name: String, limits: Limits, takesTorn: Bool, cancellation: Cancellation
  ) throws -> UnpackedArchive {
    let (contents, decoder) = try contents(of: descriptor, name, limits, takesTorn, cancellation)
    return (
      contents,
      { [self] session in
        if let session { keep(decoder, for: session.description) } else { _ = try? end(decoder) }
      }
    )
  }

  private func contents(
    of descriptor: Int32, _ name: String, _ limits: Limits, _ takesTorn: Bool, _ cancellation: Cancellation
  ) throws -> (ArchiveContents, DecoderProcess) {
    do {
      do {
        return try contentsOnce(of: descriptor, name, limits, takesTorn, cancellation)
      } catch is DecoderFailure where ArchiveFile(descriptor).size != nil {
        // Retry in a new process: the machine may have stood still. A pipe cannot be read again.
        return try contentsOnce(of: descriptor, name, limits, takesTorn, cancellation)
      }
    } catch let failure as DecoderFailure {
      let cause =
        switch failure {
        case .late: "reading it takes more than \(self.limits.decodeSeconds) s"
        case .readLimitExceeded: "the archive reader reads past the end again and again"
        case .crashed(let how): "the archive reader crashed (\(how))"
        case .gone: "the archive reader ended"
        }
      throw BadBatch("read", name, cause, advice: "pack it again, with tar or zip")
    }
  }

  private func contentsOnce(
    of descriptor: Int32, _ name: String, _ limits: Limits, _ takesTorn: Bool, _ cancellation: Cancellation
  ) throws -> (ArchiveContents, DecoderProcess) {
    var contents = ArchiveContents(limits: limits, fileBytes: ArchiveContents.size(of: descriptor))
    let file = ArchiveFile(descriptor)
    var exchange = DecoderExchange(inputBytes: file.readLimit, cancellation: cancellation)
    exchange.input = { offset, count in
      guard file.canRead(at: offset) else { throw DecoderFailure.malformed }
      return try unsafe [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
        let outcome = unsafe file.read(at: offset, into: UnsafeMutableRawBufferPointer(bytes))
        guard outcome >= 0 else { throw DiskError("read", name, code: Int32(-outcome)) }
        filled = outcome
      }
    }
    exchange.output = { message in
      guard try contents.add(&message) else { throw DecoderFailure.malformed }
    }
    let decoder = try decoder(for: nil)
    do {
      switch try decoder.ask(
        UnpackingRequest(size: file.size, takesTorn: takesTorn), seconds: self.limits.decodeSeconds, exchange)
      {
      case .done:
        guard contents.isWhole else { throw DecoderFailure.malformed }
        return (contents, decoder)
      case .outOfMemory: throw DecoderOutOfResources()
      case .bad where takesTorn:
        contents.breakOff()
        return (contents, decoder)
      case .bad(let cause, let advice): throw BadBatch("read", name, cause, advice: advice)
      }
    } catch {
      throw try end(decoder, after: error)
    }
  }
}

extension ArchiveContents {
  /// Adds the item of a decoder's message.
  fileprivate mutating func add(_ message: inout WireReader) throws -> Bool {
    switch try message.read(ArchiveUnpacking.Kind.self) {
    case .stream: return add(.stream)
    case .file: return add(.file(try message.read(), size: try message.read()))
    case .part: return try unsafe message.withBytes { unsafe !$0.isEmpty && add(.part($0)) }
    case .refused:
      return add(
        .refused(RefusedFrame(source: try message.text(limit: 4_096), reason: try message.text(limit: 255))))
    }
  }
}
