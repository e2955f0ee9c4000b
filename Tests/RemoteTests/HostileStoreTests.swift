import Encoding
import Foundation
import SegmentEncoder
import Sessions
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// Tests the client against a store that sends wrong or no responses.
@Suite struct HostileStoreTests {
  private let client: S3Client
  private let scratch: ScratchDirectory

  init() throws {
    scratch = try ScratchDirectory()
    server = try StoreServer("hostile.py")
    let environment = server.environment
    var settings = try S3Settings { environment[$0] }
    settings.pauseMs = 1
    // Tests count requests, so a slow machine must not cause a timeout.
    settings.timeoutS = 600
    client = try S3Client(S3Location("s3://replay"), settings)
  }

  private let server: StoreServer

  private func failure(_ key: String) -> ObjectStoreError? {
    #expect(throws: ObjectStoreError.self) { try client.download(key, to: scratch.path("file"), limit: 1 << 20) }
  }

  @Test func transientFailureIsRetried() throws {
    for key in ["busy-4", "shortonce-1"] {
      #expect(try client.download(key, to: scratch.path(key), limit: 10_000) != nil)
    }
    #expect(try String(contentsOfFile: scratch.path("shortonce-1"), encoding: .utf8) == "whole")
    #expect(try client.put("conflict-2", .bytes([1]), .json, when: .absent) != nil)
    #expect(client.requests == ["GET": 7, "PUT": 3])
  }

  @Test(arguments: ["short", "gone", "status-500", "status-503", "status-429"])
  func lastingFailureThrowsAfterAllRetries(key: String) throws {
    let error = try #require(failure(key))
    #expect(error.operation == "GET" && error.subject == "s3://replay/\(key)" && ![401, 403].contains(error.status))
    #expect(client.requests == ["GET": 5])
    #expect(try names(in: scratch.path).isEmpty)
  }

  @Test func bytesThatWereNotWrittenAreAskedForAgain() throws {
    #expect(try client.get("flipped-2", limit: 10)?.bytes == Array("well".utf8))
    #expect(client.requests == ["GET": 3])
    let error = try #require(failure("flipped"))
    #expect(client.requests == ["GET": 8])
    #expect(error.subject == "s3://replay/flipped" && error.cause.contains("not those that were written"))
    #expect(error.advice == "write the object again, or remove it")
    #expect(try names(in: scratch.path).isEmpty)
  }

  /// Tags of other stores may look like an MD5, and so do those of objects that are encrypted with a key of a key service.
  @Test func tagIsASumWhereTheStoreHasShownIt() throws {
    func read(_ key: String) -> Bool { (try? client.get(key, limit: 10)) != nil }
    #expect(read("rotten"))
    _ = try client.put("summed", .bytes([1]), .json, when: .always)
    #expect(!read("rotten") && !read("rotten-2") && read("rotten-1"))
    _ = try client.put("numbered", .bytes([1]), .json, when: .always)
    #expect(read("rotten"))
    _ = try client.put("summed", .bytes([1]), .json, when: .always)
    #expect(read("rotten"))
  }

  @Test func commandsThatReadSessionsEndWithAnErrorThatNamesTheStore() throws {
    let places = [
      "a", "secret", "endless", "large-99999999999", "lengthless", "tagless", "status-403", "redirect", "halflist",
      "samelist-1", "foreignlist", "badtag-1",
    ]
    let calls = [
      ["stitch", "x", "--to", scratch.path("x.mp4")], ["pictures", "x", "--at", "+1s", "--to", scratch.path("x.png")],
      ["reencode", "x", "--quality", "small", "--output", scratch.path("y")], ["verify", "x"], ["verify"],
    ]
    for place in places {
      for words in calls {
        let result = try Tool.run(
          EncoderWorker.path, words + ["--store", "s3://replay/\(place)"],
          environment: server.environment.merging(["TMPDIR": scratch.path("")]) { $1 })
        let text = result.text + result.errors
        #expect([65, 75].contains(result.status) && text.contains("s3://replay/\(place)/"), "\(words): \(text)")
        #expect(!text.contains(scratch.path("encoder-worker")), "\(text)")
      }
    }
    #expect(try !names(in: scratch.path).contains { $0.hasPrefix("x") })
  }

  @Test func stalledDownloadThrowsAfterTheTimeout() throws {
    let environment = server.environment
    var settings = try S3Settings { environment[$0] }
    settings.timeoutS = 1
    settings.retries = 0
    let client = try S3Client(S3Location("s3://replay"), settings)
    #expect(throws: ObjectStoreError.self) { try client.download("stall", to: scratch.path("file"), limit: 1 << 20) }
    #expect(try names(in: scratch.path).isEmpty)
  }

  /// All attempts of a call share one deadline, and an answer that only drips does not move it.
  @Test(arguments: ["stall", "drip"])
  func timeoutDoesNotMultiplyWithTheRetries(key: String) throws {
    let environment = server.environment
    var settings = try S3Settings { environment[$0] }
    (settings.timeoutS, settings.pauseMs) = (1, 1)
    let client = try S3Client(S3Location("s3://replay"), settings)
    let error = #expect(throws: ObjectStoreError.self) {
      try client.download(key, to: scratch.path("file"), limit: 1 << 20)
    }
    #expect(error?.status == nil)
    #expect((1...2).contains(client.requests["GET"] ?? 0))
  }

  @Test func permanentFailureIsNotRetried() throws {
    for key in [
      "status-400", "status-403", "status-501", "redirect", "lengthless", "tagless", "endless-403", "bucket", "skewed",
    ] {
      let before = client.requests["GET"] ?? 0
      _ = try #require(failure(key))
      #expect(client.requests["GET"] == before + 1, "\(key)")
    }
    #expect(try names(in: scratch.path).isEmpty)
    #expect(failure("status-403")?.status == 403)
    #expect(
      failure("status-400")?.description
        == "GET s3://replay/status-400: status 400 Code400: a <word> & more; see what the store says of it")
    #expect(failure("redirect")?.advice == "set AWS_REGION to the bucket's, eu-west-3")
    #expect(failure("skewed")?.advice == "set this machine's clock")
  }

  @Test func secretsThatAStoreRepeatsAreNotShown() throws {
    let credentials = AWSCredentials(key: "AKID", secret: "hush", token: "hush/token+more")
    func said(_ code: String, _ message: String) -> String {
      let text = "<Error><Code>\(code)</Code><Message>\(message)</Message></Error>"
      let failure = S3ErrorResponse(403, text, ["x-amz-bucket-region": "hush"], hiding: credentials)
      return failure.error("GET", "x", isSigned: true, remedy: "y").description
    }
    #expect(said("AccessDenied", "X-Amz-Security-Token: hush/token&#x2b;more") == said("AccessDenied", "hush"))
    #expect(!said("hush", "hush/token+more").contains("hush"))
    #expect(said("Access Denied", "no") == "GET x: status 403: no; allow it for this identity in the bucket's policy")
    #expect(said("AccessDenied", String(repeating: "a", count: 60_000)).utf8.count < 500)
  }

  @Test func secretsThatAQueueRepeatsAreNotShown() {
    let credentials = AWSCredentials(key: "AKID", secret: "hush", token: "hidden/token")
    func said(_ code: String, _ message: String) -> String {
      let text = #"{"__type":"com.amazonaws.sqs#\#(code)","message":"\#(message)"}"#
      let failure = SQSErrorResponse(403, Array(text.utf8), hiding: credentials)
      return failure.error("SendMessage", "q", remedy: "y").description
    }
    #expect(said("AccessDenied", "no") != said("AccessDenied", "signed with hush"))
    #expect(said("AccessDenied", "signed with hush") == said("AccessDenied", #"token hidden\/token"#))
    #expect(!said("hush", "hidden/token").contains("hush") && !said("hush", "hidden/token").contains("hidden"))
  }

  @Test func timeOfAnAttemptThatMovedEnoughIsGivenBack() {
    var deadline = TransferDeadline(afterS: 60)
    let begin = deadline.atMs
    deadline.extend(by: 100_000, after: 1 << 20)
    #expect(deadline.atMs == begin + 100_000)
    deadline.extend(by: 100_000, after: 40)
    #expect(deadline.atMs == begin + 100_010)
  }

  @Test func objectAboveTheSizeLimitIsRejected() throws {
    for key in ["large-1000000000000", "large-99999999999999999999999", "endless"] {
      #expect(throws: (any Error).self, "\(key)") { try client.get(key, limit: 1 << 20) }
    }
    #expect(throws: ObjectTooLarge.self) { try client.get("large-2000000", limit: 1 << 20) }
    #expect(throws: ObjectTooLarge.self) { try client.get("endless", limit: 1 << 20) }
  }

  @Test func copyWithAnErrorInTheResponseBodyThrows() throws {
    let tag = try #require(try client.head("a")?.tag)
    let error = #expect(throws: ObjectStoreError.self) { try client.copy("a", tag, to: "copyfails") }
    #expect(error?.code == "InternalError")
    #expect(client.requests == ["HEAD": 2, "COPY": 5])
  }

  @Test(arguments: ["halflist", "samelist-1", "badtag-1", "foreignlist"])
  func invalidListResponseThrowsInsteadOfReturningAnEmptyList(prefix: String) {
    #expect(throws: ObjectStoreError.self) { try client.list(prefix, after: "samelist-1a") }
  }

  /// A caller that goes on behind the last key of such a page would never end, or its sums would overflow.
  @Test(arguments: ["unsorted", "twins", "longkey", "hugesize", "oddsize"])
  func listThatDoesNotAscendOrIsOutOfBoundsThrows(prefix: String) throws {
    let error = try #require(throws: ObjectStoreError.self) { try client.list(prefix, after: nil) }
    #expect(error.description.utf8.count < 500 && error.description.contains("an answer that S3 does not give"))
  }

  @Test func sizeBeyondAnyObjectThrows() {
    #expect(throws: ObjectStoreError.self) { try client.head("large-99999999999999999") }
  }

  @Test func textOfAStoreIsOneLine() {
    let text = "<Error><Code>Odd</Code><Message>a\nb\u{1B}[31m</Message></Error>"
    #expect(S3ErrorResponse(400, text, [:], hiding: nil).cause == "a\\nb\\u001b[31m")
  }

  @Test func unreachableStoreThrowsARetryableError() throws {
    server.stop()
    let error = failure("x")
    #expect(error?.status == nil && error?.description.contains("check the endpoint") == true)
    #expect(Disposition(of: try #require(error), batch: "b") == .retry)
  }
}
