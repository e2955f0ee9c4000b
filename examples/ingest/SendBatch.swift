// Sends a batch to a worker: SendBatch FILE http://HOST:PORT/v1/batches/NAME, with the token in INGEST_TOKEN.
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@main struct SendBatch {
  static func main() async throws {
    let words = CommandLine.arguments
    guard words.count == 3, let address = URL(string: words[2]) else { return fail("SendBatch FILE URL") }
    let file = URL(fileURLWithPath: words[1])
    var request = URLRequest(url: address)
    request.httpMethod = "PUT"
    request.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
    if let token = ProcessInfo.processInfo.environment["INGEST_TOKEN"] {
      request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    }
    for _ in 0..<50 {
      var pause = 1
      // A broken connection: the same request again does no harm.
      if let (body, answer) = try? await URLSession.shared.upload(for: request, fromFile: file),
        let http = answer as? HTTPURLResponse
      {
        let text = String(decoding: body, as: UTF8.self)
        if [200, 201].contains(http.statusCode) { return print(http.statusCode, text, terminator: "") }
        guard [408, 429, 503].contains(http.statusCode) else { return fail("\(http.statusCode): \(text)") }
        pause = http.value(forHTTPHeaderField: "Retry-After").flatMap { Int($0) } ?? 1
      }
      try await Task.sleep(nanoseconds: UInt64(pause) * 1_000_000_000)
    }
    fail("no answer")
  }

  static func fail(_ reason: String) {
    FileHandle.standardError.write(Data("\(reason)\n".utf8))
    exit(1)
  }
}
