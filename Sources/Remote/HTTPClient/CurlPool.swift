// The only file that loads libcurl: for an object store, for credentials, and for a receiver of events.

import CCurl
import FileSystem
import Glibc
import Synchronization

/// An HTTP request without its body.
struct CurlRequest {
  enum Method: String {
    case get = "GET"
    case head = "HEAD"
    case put = "PUT"
    case post = "POST"
    case delete = "DELETE"
  }

  let method: Method
  let url: String
  let headers: [(name: String, value: String)]
  /// Seconds without a byte after which the request fails.
  let timeoutS: Int
  var connectTimeoutS = 10
  /// Whether the proxies of the environment are used.
  var usesProxy = true
}

/// Sends requests of any thread, over reused connections.
final class CurlPool: Sendable {
  private nonisolated(unsafe) let library: UnsafePointer<ccurl_library>
  private let idle = Mutex<[Handle]>([])

  private static let library = DynamicLibrary("libcurl", package: "libcurl4", ccurl_library()) { ccurl_load(&$0) }

  /// Loaded once.
  private static let loaded = Result<CurlPool, any Error> {
    let functions = UnsafeMutablePointer<ccurl_library>.allocate(capacity: 1)
    functions.initialize(to: try library.functions())
    // TLS libraries write without MSG_NOSIGNAL: a closed connection would end the process.
    var action = sigaction()
    if sigaction(SIGPIPE, nil, &action) == 0, action.__sigaction_handler.sa_handler == nil { signal(SIGPIPE, SIG_IGN) }
    return CurlPool(functions)
  }

  static func shared() throws -> CurlPool { try loaded.get() }

  private init(_ library: UnsafePointer<ccurl_library>) { self.library = library }

  /// A handle of libcurl with its connections, for one thread at a time.
  private final class Handle: @unchecked Sendable {
    let curl: UnsafeMutableRawPointer
    /// The message of libcurl on a failure.
    let message = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init?(_ library: UnsafePointer<ccurl_library>) {
      guard let curl = library.pointee.curl_easy_init() else { return nil }
      self.curl = curl
    }
  }

  /// Sends a request with the body of `transfer`, which gets the response.
  ///
  /// - Throws: ``TransferFailure`` if the response is missing or incomplete; the error of `transfer`.
  func perform(_ request: CurlRequest, _ transfer: CurlTransfer) throws {
    guard let handle = idle.withLock({ $0.popLast() }) ?? Handle(library) else {
      throw TransferFailure(cause: "curl_easy_init: out of memory", isTransient: true)
    }
    // The pool grows to the maximum of concurrent requests.
    defer { idle.withLock { $0.append(handle) } }
    let curl = handle.curl
    library.pointee.curl_easy_reset(curl)
    handle.message.pointee = 0
    var headers: UnsafeMutablePointer<curl_slist>?
    defer { library.pointee.curl_slist_free_all(headers) }
    for (name, value) in request.headers {
      guard let longer = library.pointee.curl_slist_append(headers, "\(name): \(value)")
      else { throw TransferFailure(cause: "curl_slist_append: out of memory", isTransient: true) }
      headers = longer
    }
    try set(request, bytes: transfer.body.count, on: handle, headers)
    try check(transfer.connect(library, curl), handle)
    let code = withExtendedLifetime(transfer) { library.pointee.curl_easy_perform(curl) }
    if let failure = transfer.failure { throw failure }
    // The transfer has read enough of an error response.
    if code == CURLE_WRITE_ERROR && transfer.status >= 300 { return }
    try check(code, handle)
  }

  private func set(
    _ request: CurlRequest, bytes: Int, on handle: Handle, _ headers: UnsafeMutablePointer<curl_slist>?
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
    try text(CURLOPT_PROTOCOLS_STR, "http,https")
    if !request.usesProxy { try text(CURLOPT_NOPROXY, "*") }
    // Keys may have parts such as "..", so the path is sent as it is.
    for (option, value) in [
      (CURLOPT_PATH_AS_IS, 1), (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)),
      (CURLOPT_NOSIGNAL, 1), (CURLOPT_CONNECTTIMEOUT, request.connectTimeoutS), (CURLOPT_LOW_SPEED_LIMIT, 100),
      (CURLOPT_LOW_SPEED_TIME, request.timeoutS), (CURLOPT_TCP_KEEPALIVE, 1),
    ] { try number(option, value) }
    switch request.method {
    case .get: try number(CURLOPT_HTTPGET, 1)
    case .head: try number(CURLOPT_NOBODY, 1)
    case .delete: try text(CURLOPT_CUSTOMREQUEST, "DELETE")
    case .put, .post:
      // A PUT is a POST with the method PUT: libcurl's own upload sends "Expect: 100-continue" and waits, even for the
      // smallest body.
      try number(CURLOPT_POST, 1)
      if request.method == .put { try text(CURLOPT_CUSTOMREQUEST, "PUT") }
      try check(ccurl_set_size(library, curl, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(bytes)), handle)
    }
    try check(ccurl_set_headers(library, curl, headers), handle)
  }

  private func check(_ code: CURLcode, _ handle: Handle) throws {
    guard code != CURLE_OK else { return }
    // It may repeat what the server has sent.
    let message = String(cString: handle.message).oneLine
    throw TransferFailure(
      cause: message.isEmpty
        ? library.pointee.curl_easy_strerror(code).map { String(cString: $0) } ?? "error \(code.rawValue)" : message,
      isTransient: Self.transient.contains(code.rawValue))
  }

  private static let transient: Set<UInt32> = Set(
    [
      CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_WEIRD_SERVER_REPLY, CURLE_PARTIAL_FILE,
      CURLE_OPERATION_TIMEDOUT, CURLE_SSL_CONNECT_ERROR, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR,
      CURLE_SEND_FAIL_REWIND, CURLE_OUT_OF_MEMORY,
    ].map(\.rawValue))
}

/// The response is missing or incomplete.
struct TransferFailure: Error {
  let cause: String
  /// Whether a retry may help.
  let isTransient: Bool
  /// The next step for a person; nil for that of a server that is not reached.
  var advice: String?
}
