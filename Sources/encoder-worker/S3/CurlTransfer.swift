// One request and its answer, as libcurl asks for bytes and hands them over. Used by one thread, for one request.

import CCurl
import CLinux
import FileSystem
import Glibc
import SegmentEncoder
import Sessions

final class CurlTransfer {
  /// Where the bytes of a good answer go; what it throws ends the transfer.
  typealias Sink = (_ bytes: UnsafeRawBufferPointer, _ offset: Int) throws -> Void

  /// HTTP's; 0 before there is one.
  private(set) var status = 0
  /// By their names in lower case, those that are used.
  private(set) var headers: [String: String] = [:]
  /// Of an answer that is not good, as far as it is read.
  private(set) var refusal: [UInt8] = []
  /// The error that ended it on our side.
  private(set) var failure: (any Error)?

  private let body: RequestBody
  private var sent = 0
  private let key: String
  private let limit: Int
  /// Bytes of a good answer.
  private(set) var received = 0
  private let sink: Sink
  private let isOverdue: () -> Bool

  private static let known: Set = [
    "etag", "content-length", "transfer-encoding", "x-amz-bucket-region", "last-modified", "date",
  ]
  private static let maximumRefusalBytes = 64 << 10

  /// - Parameter limit: a good answer with more bytes is not read.
  /// - Parameter isOverdue: asked all the while, and once a second where nothing comes.
  init(
    sending body: RequestBody, key: String, limit: Int, isOverdue: @escaping () -> Bool, sink: @escaping Sink
  ) {
    self.isOverdue = isOverdue
    self.body = body
    self.key = key
    self.limit = limit
    self.sink = sink
  }

  /// The Content-Length of the response; nil if it is missing or invalid.
  var length: Int? { headers["content-length"].flatMap { Int($0) } }

  /// For how long what is answered has been as it is, in seconds, by the other side's clock; nil where it does not say.
  var ageS: Int? {
    let times = ["last-modified", "date"].map { headers[$0].map { clinux_http_time($0) } ?? 0 }
    return times.contains(0) ? nil : times[1] - times[0]
  }

  /// Whether it can be known of an answer that it has come whole.
  var hasEnd: Bool { length != nil || headers["transfer-encoding"]?.lowercased() == "chunked" }

  func connect(_ library: UnsafePointer<ccurl_library>, _ curl: UnsafeMutableRawPointer) -> CURLcode {
    return ccurl_set_callbacks(
      library, curl,
      { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
          .takeHeader(UnsafeRawBufferPointer(start: bytes, count: size * count))
        return size * count
      },
      { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        let all = UnsafeRawBufferPointer(start: bytes, count: size * count)
        // Another number than came ends the transfer.
        return Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue().take(all) ? all.count : all.count + 1
      },
      { bytes, size, count, context in
        guard let bytes, let context else { return Int(CURL_READFUNC_ABORT) }
        return Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
          .give(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
      },
      { context, offset, origin in
        guard let context, origin == SEEK_SET else { return Int32(CURL_SEEKFUNC_CANTSEEK) }
        Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue().sent = Int(offset)
        return Int32(CURL_SEEKFUNC_OK)
      },
      { context, _, _, _, _ in
        guard let context else { return 1 }
        return Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue().shouldContinue() ? 0 : 1
      },
      Unmanaged.passUnretained(self).toOpaque())
  }

  private func shouldContinue() -> Bool {
    if isOverdue() { failure = Cancelled() }
    return failure == nil
  }

  private func takeHeader(_ bytes: UnsafeRawBufferPointer) {
    let line = String(decoding: bytes, as: UTF8.self)
    // Another answer begins: what came before was a 100.
    if line.hasPrefix("HTTP/") {
      status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
      headers = [:]
      return
    }
    guard let colon = line.firstIndex(of: ":") else { return }
    let name = line[..<colon].lowercased()
    guard Self.known.contains(name) else { return }
    headers[name] = String(line[line.index(after: colon)...].drop { $0 == " " }.prefix { !$0.isNewline })
  }

  /// - Returns: whether to go on.
  private func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard (200...299).contains(status) else {
      refusal += bytes.prefix(Self.maximumRefusalBytes - refusal.count)
      return refusal.count < Self.maximumRefusalBytes
    }
    guard max(length ?? 0, received + bytes.count) <= limit else {
      failure = ObjectTooLarge(key: key, limit: limit)
      return false
    }
    do {
      try sink(bytes, received)
      received += bytes.count
      return true
    } catch {
      failure = error
      return false
    }
  }

  private func give(_ room: UnsafeMutableRawBufferPointer) -> Int {
    do {
      let count = try body.read(into: room, at: sent)
      sent += count
      return count
    } catch {
      failure = error
      return Int(CURL_READFUNC_ABORT)
    }
  }
}
