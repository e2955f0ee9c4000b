// The one place that starts libcurl: requests of any thread, over connections that are used again.

import CCurl
import Encoding
import FileSystem
import Glibc
import SegmentEncoder
import Synchronization
import WorkQueues

/// A request as it goes out.
struct CurlRequest {
  enum Method: String {
    case get = "GET"
    case head = "HEAD"
    case put = "PUT"
    case delete = "DELETE"
  }

  let method: Method
  let url: String
  let headers: [(name: String, value: String)]
  let body: RequestBody
  /// Seconds without a byte after which the request fails.
  let timeoutS: Int
}

final class CurlPool: Sendable {
  private nonisolated(unsafe) let library: UnsafePointer<ccurl_library>
  private let idle = Mutex<[Handle]>([])

  private static let library = DynamicLibrary("libcurl", package: "libcurl4", ccurl_library()) { ccurl_load(&$0) }

  /// Loaded once, for good.
  private static let loaded = Result<CurlPool, any Error> {
    let functions = UnsafeMutablePointer<ccurl_library>.allocate(capacity: 1)
    functions.initialize(to: try library.functions())
    // A peer that goes away is an error of that write; TLS would end the process.
    var action = sigaction()
    if sigaction(SIGPIPE, nil, &action) == 0, action.__sigaction_handler.sa_handler == nil { signal(SIGPIPE, SIG_IGN) }
    return CurlPool(functions)
  }

  static func shared() throws -> CurlPool { try loaded.get() }

  private init(_ library: UnsafePointer<ccurl_library>) { self.library = library }

  /// libcurl's handle, with its connections; one thread at a time has it.
  private final class Handle: @unchecked Sendable {
    let curl: UnsafeMutableRawPointer
    /// The message of libcurl on a failure.
    let message = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init?(_ library: UnsafePointer<ccurl_library>) {
      guard let curl = library.pointee.curl_easy_init() else { return nil }
      self.curl = curl
    }
  }

  /// Sends it, and has the answer handed to `transfer`.
  ///
  /// - Throws: ``TransferFailure``, when there was no whole answer.
  func perform(_ request: CurlRequest, _ transfer: CurlTransfer) throws {
    guard let handle = idle.withLock({ $0.popLast() }) ?? Handle(library) else {
      throw TransferFailure(cause: "curl_easy_init: out of memory", mayPass: true)
    }
    // They are as many as threads have asked at once, and stay for the next.
    defer { idle.withLock { $0.append(handle) } }
    let curl = handle.curl
    library.pointee.curl_easy_reset(curl)
    handle.message.pointee = 0
    var headers: UnsafeMutablePointer<curl_slist>?
    defer { library.pointee.curl_slist_free_all(headers) }
    for (name, value) in request.headers {
      guard let longer = library.pointee.curl_slist_append(headers, "\(name): \(value)")
      else { throw TransferFailure(cause: "curl_slist_append: out of memory", mayPass: true) }
      headers = longer
    }
    try set(request, on: handle, headers)
    try check(transfer.connect(library, curl), handle)
    let code = withExtendedLifetime(transfer) { library.pointee.curl_easy_perform(curl) }
    if let failure = transfer.failure { throw failure }
    // Of a refusal the rest is not wanted.
    if code == CURLE_WRITE_ERROR && transfer.status >= 300 { return }
    try check(code, handle)
  }

  private func set(
    _ request: CurlRequest, on handle: Handle, _ headers: UnsafeMutablePointer<curl_slist>?
  ) throws {
    let curl = handle.curl
    func number(_ option: CURLoption, _ value: Int) throws {
      try check(ccurl_set_number(library, curl, option, value), handle)
    }
    func text(_ option: CURLoption, _ value: String) throws {
      try check(ccurl_set_text(library, curl, option, value), handle)
    }
    try check(ccurl_set_text(library, curl, CURLOPT_ERRORBUFFER, handle.message), handle)
    try text(CURLOPT_URL, request.url)
    // Keys may have dots and slashes in any order.
    try number(CURLOPT_PATH_AS_IS, 1)
    try text(CURLOPT_PROTOCOLS_STR, "http,https")
    try number(CURLOPT_FOLLOWLOCATION, 0)
    try number(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    try number(CURLOPT_NOSIGNAL, 1)
    try number(CURLOPT_CONNECTTIMEOUT, 10)
    try number(CURLOPT_LOW_SPEED_LIMIT, 100)
    try number(CURLOPT_LOW_SPEED_TIME, request.timeoutS)
    try number(CURLOPT_TCP_KEEPALIVE, 1)
    switch request.method {
    case .get: try number(CURLOPT_HTTPGET, 1)
    case .head: try number(CURLOPT_NOBODY, 1)
    case .delete: try text(CURLOPT_CUSTOMREQUEST, "DELETE")
    case .put:
      // A POST under PUT's name: libcurl's own upload sends "Expect: 100-continue" and waits for the answer, even before the
      // smallest body.
      try number(CURLOPT_POST, 1)
      try text(CURLOPT_CUSTOMREQUEST, "PUT")
      try check(ccurl_set_size(library, curl, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.count)), handle)
    }
    try check(ccurl_set_headers(library, curl, headers), handle)
  }

  private func check(_ code: CURLcode, _ handle: Handle) throws {
    guard code != CURLE_OK else { return }
    let said = String(cString: handle.message)
    throw TransferFailure(
      cause: said.isEmpty
        ? library.pointee.curl_easy_strerror(code).map { String(cString: $0) } ?? "error \(code.rawValue)" : said,
      mayPass: Self.passing.contains(code.rawValue))
  }

  private static let passing: Set<UInt32> = Set(
    [
      CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_WEIRD_SERVER_REPLY, CURLE_PARTIAL_FILE,
      CURLE_OPERATION_TIMEDOUT, CURLE_SSL_CONNECT_ERROR, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR,
      CURLE_SEND_FAIL_REWIND, CURLE_OUT_OF_MEMORY,
    ].map(\.rawValue))
}

/// There was no answer, or not all of it.
struct TransferFailure: Error {
  let cause: String
  /// Whether it is worth another try.
  let mayPass: Bool
}
