import CCurl
import CLinux
import FileSystem
import Glibc
import Sessions

/// The callbacks of libcurl for one request and its response. For one thread.
final class CurlTransfer {
  /// Takes the bytes of a successful response. An error ends the transfer.
  typealias Sink = (_ bytes: UnsafeRawBufferPointer, _ offset: Int) throws -> Void

  let body: RequestBody
  /// The HTTP status; 0 before the response.
  private(set) var status = 0
  /// The headers that are used, by name in lower case.
  private(set) var headers: [String: String] = [:]
  /// The beginning of an error response.
  private(set) var errorBody: [UInt8] = []
  /// The error of this side that ended the transfer.
  private(set) var failure: (any Error)?
  /// The bytes of a successful response that were received.
  private(set) var received = 0
  /// The sum of the bytes of a successful response; nil if nobody asks.
  var sum: ContentSum?

  /// The bytes of the body and of a successful response.
  var moved: Int { sent + received }

  private var sent = 0
  private let key: String
  private let limit: Int
  private let sink: Sink
  private let cancellation: Cancellation
  private let deadline: TransferDeadline?

  private static let known: Set = [
    "etag", "content-length", "transfer-encoding", "x-amz-bucket-region", "last-modified", "date", "location",
    "retry-after", ContentSum.header, ContentSum.encryption, ContentSum.customerEncryption,
  ]
  private static let maximumErrorBytes = 64 << 10

  /// - Parameters:
  ///   - limit: the maximum bytes of a successful response.
  ///   - cancellation: asked during the transfer, at least once a second.
  ///   - deadline: the end of the transfer; nil for none but the timeout of the request.
  init(
    sending body: RequestBody, key: String, limit: Int, cancellation: Cancellation, deadline: TransferDeadline? = nil,
    sink: @escaping Sink
  ) {
    self.cancellation = cancellation
    self.deadline = deadline
    self.body = body
    self.key = key
    self.limit = limit
    self.sink = sink
  }

  /// The Content-Length of the response; nil if it is missing or invalid.
  var length: Int? { headers["content-length"].flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 } }

  /// Seconds since the last modification, by the server's clock; nil if a header is missing.
  var ageS: Int? {
    let times = ["last-modified", "date"].map { headers[$0].map { clinux_http_time($0) } ?? 0 }
    return times.contains(0) ? nil : times[1] - times[0]
  }

  /// The time of the response by the server's clock, in unix milliseconds; nil if the header is missing or invalid.
  var dateMs: Int64? {
    headers["date"].map { Int64(clinux_http_time($0)) }.flatMap { $0 > 0 ? 1_000 * $0 : nil }
  }

  /// Whether the response tells where it ends.
  var hasEnd: Bool { length != nil || headers["transfer-encoding"]?.lowercased() == "chunked" }

  func connect(_ library: UnsafePointer<ccurl_library>, _ curl: UnsafeMutableRawPointer) -> CURLcode {
    ccurl_set_callbacks(
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
        // Any other number than the received one ends the transfer.
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
    if cancellation.isRequested { failure = Cancelled() }
    if failure == nil, let deadline, deadline.hasPassed(after: moved) {
      failure = TransferFailure(cause: "\(moved) bytes in all the time of the request", isTransient: true)
    }
    return failure == nil
  }

  private func takeHeader(_ bytes: UnsafeRawBufferPointer) {
    let line = String(decoding: bytes, as: UTF8.self)
    // A response begins; the one before was a 100.
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

  /// - Returns: whether the transfer continues.
  private func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard (200...299).contains(status) else {
      errorBody += bytes.prefix(Self.maximumErrorBytes - errorBody.count)
      return errorBody.count < Self.maximumErrorBytes
    }
    guard max(length ?? 0, received + bytes.count) <= limit else {
      failure = ObjectTooLarge(key: key, limit: limit)
      return false
    }
    sum?.add(bytes, headers)
    do {
      try sink(bytes, received)
      received += bytes.count
      return true
    } catch {
      failure = error
      return false
    }
  }

  private func give(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    do {
      let count = try body.read(into: buffer, at: sent)
      sent += count
      return count
    } catch {
      failure = error
      return Int(CURL_READFUNC_ABORT)
    }
  }
}

/// The end of a request with all its attempts. It moves on with the bytes that an attempt has moved: a large object may
/// take long, a slow answer may not.
struct TransferDeadline {
  /// On the monotonic clock, for an attempt that moves no byte.
  private(set) var atMs: Int

  /// The least that a store has to send or take: 4 KiB a second.
  private static let bytesAMillisecond = 4

  init(afterS seconds: Int) { atMs = MonotonicClock.milliseconds() + 1_000 * seconds }

  /// Milliseconds until an attempt that moves no byte has to end.
  var remainingMs: Int { max(0, atMs - MonotonicClock.milliseconds()) }

  /// Gives back the time of an attempt, as far as it moved enough bytes: a large object can be tried again.
  mutating func extend(by spentMs: Int, after bytes: Int) { atMs += min(spentMs, bytes / Self.bytesAMillisecond) }

  func hasPassed(after bytes: Int) -> Bool {
    MonotonicClock.milliseconds() >= atMs + bytes / Self.bytesAMillisecond
  }
}
