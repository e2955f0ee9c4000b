import CHiredis

/// Reads replies of Redis from pieces of their bytes, within bounds. For one thread at a time.
final class RedisReplyReader {
  /// The maximum bytes of a reply. The largest that Redis gives are 16 claims with names of 1 KiB, of 18 KiB; `INFO` has
  /// some 6 KiB.
  static let maximumBytes = 1 << 20
  /// The maximum elements of a reply, those of lists in lists included. A renewal returns one for each lost entry.
  static let maximumElements = 1 << 16

  /// Why bytes are no reply.
  struct Fault: Error { let cause: String }

  private let library: chr_library
  private let reader: UnsafeMutablePointer<chr_reader>
  /// The bytes of the reply so far.
  private(set) var count = 0

  init(_ library: chr_library) throws(Fault) {
    guard let reader = withUnsafePointer(to: library, { chr_reader_create($0) }) else {
      throw Fault(cause: "no memory")
    }
    (self.library, self.reader) = (library, reader)
    begin()
  }

  deinit { withUnsafePointer(to: library) { chr_reader_free($0, reader) } }

  /// Begins the next reply.
  func begin() {
    count = 0
    reader.pointee.elements = Self.maximumElements
  }

  /// Reads bytes of a reply.
  ///
  /// - Returns: nil until the reply is whole.
  /// - Throws: ``Fault``; then the reader is of no use any more.
  func read(_ bytes: ArraySlice<UInt8>) throws(Fault) -> RedisReply? {
    count += bytes.count
    guard count <= Self.maximumBytes else { throw Fault(cause: "an answer of more than \(Self.maximumBytes) bytes") }
    var found: UnsafeMutablePointer<redisReply>?
    let isGood = bytes.withUnsafeBytes { bytes in
      withUnsafePointer(to: library) {
        chr_feed($0, reader, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, &found) != 0
      }
    }
    guard isGood else {
      let isLong = reader.pointee.has_refused != 0
      throw Fault(cause: isLong ? "an answer of more than \(Self.maximumElements) elements" : reason)
    }
    guard let found else { return nil }
    defer { library.freeReplyObject(found) }
    // Redis sends one reply for each command: the rest would be taken for the next one.
    guard reader.pointee.reader.pointee.pos == reader.pointee.reader.pointee.len else {
      throw Fault(cause: "more than one answer")
    }
    return RedisReply(reading: found)
  }

  private var reason: String {
    withUnsafeBytes(of: reader.pointee.reader.pointee.errstr) { RedisReply.line($0.prefix { $0 != 0 }) }
  }
}
