import FileSystem
import Foundation
import SegmentEncoder
import Sessions
import TestSupport
import Testing

@testable import Remote

/// Tests a store's client with credentials that expire, a store whose clock differs, and permissions that come and go.
@Suite(.enabled(if: StoreServer.isInstalled, Comment(rawValue: StoreServer.reason))) struct StoreIdentityTests {
  private let identity: IdentityServer
  private let store: StoreServer
  private let scratch: ScratchDirectory

  init() throws {
    (identity, scratch) = (try IdentityServer(), try ScratchDirectory())
    store = try StoreServer(variables: [
      "STORE_ISSUED": identity.issuedPath, "STORE_CONTROL": scratch.path("control"),
    ])
  }

  private func rules(_ json: String) throws { try scratch.file("control", Array(json.utf8)) }

  private func client(_ step: IdentityServer.Step, warnings: Warnings = Warnings()) throws -> S3Client {
    let variables = store.environment.merging(try identity.environment(step)) { $1 }
    var settings = try S3Settings(environment: { variables[$0] }, warn: { warnings.add($0) })
    settings.pauseMs = 1
    return try S3Client(S3Location("s3://replay"), settings)
  }

  @Test(arguments: IdentityServer.Step.allCases)
  func requestsGoOnWhileCredentialsExpire(step: IdentityServer.Step) throws {
    identity.set(.init(lifeS: 2))
    let client = try client(step)
    for number in 0..<16 {
      #expect(try client.put("\(number)", .bytes([1]), .json, when: .absent) != nil)
      usleep(250_000)
    }
    #expect(try store.keys().count == 16)
    #expect(try identity.issued().count >= 2)
  }

  /// The store forgets credentials before they expire.
  @Test func refusedCredentialsAreRenewedWithinTheRequest() throws {
    let client = try client(.container)
    #expect(try client.head("x") == nil)
    try Data().write(to: URL(fileURLWithPath: identity.issuedPath))
    #expect(try client.put("x", .bytes([1]), .json, when: .absent) != nil)
    #expect(client.requests == ["HEAD": 1, "PUT": 2])
    #expect(try identity.issued().count == 1)
    // Other credentials of the same identity may not do more.
    try rules(#"{"deny": true}"#)
    let error = #expect(throws: ObjectStoreError.self) { try client.get("x", limit: 1) }
    #expect(error?.status == 403 && client.requests["GET"] == 1)
    #expect(try identity.issued().count == 1)
  }

  @Test func failingIdentityIsAnErrorAndNeverAnUnsignedRequest() throws {
    identity.set(.init(fault: "status-500"))
    let client = try client(.webIdentity)
    let error = #expect(throws: Failure.self) { try client.get("x", limit: 1) }
    #expect(error?.description.contains("web identity") == true && client.requests.isEmpty)
    #expect(Disposition(of: try #require(error), batch: "b") == .retry)
    #expect(Disposition.isSystemWide(try #require(error)))
  }

  @Test(arguments: [600, -600])
  func clockOfTheStoreIsTakenOver(skewS: Int) throws {
    try rules("{\"skewS\": \(skewS)}")
    let warnings = Warnings()
    let client = try client(.container, warnings: warnings)
    // The answer to a HEAD has no error code.
    #expect(try client.head("x") == nil)
    #expect(try client.put("x", .bytes([1]), .json, when: .absent) != nil)
    #expect(try client.get("x", limit: 1)?.bytes == [1])
    #expect(client.requests == ["HEAD": 2, "PUT": 1, "GET": 1])
    #expect(warnings.all.count == 1 && warnings.all.first?.contains("set the clock") == true)
    // A clock that was set.
    try rules("{}")
    #expect(try client.get("x", limit: 1)?.bytes == [1])
    try rules(#"{"skewS": 0}"#)
    #expect(try client.get("x", limit: 1)?.bytes == [1])
    #expect(warnings.all.count == 1)
  }

  @Test func eachServiceHasItsOwnClock() {
    let clock = SigningClock(wallMs: { 1_000_000 })
    #expect(clock.correct(by: 2_000_000, for: "store"))
    #expect(!clock.correct(by: 1_000_000, for: "sts"))
    #expect(clock.nowMs(for: "store") == 2_000_000 && clock.nowMs(for: "sts") == 1_000_000)
  }

  @Test func withdrawnPermissionConcernsNoBatch() throws {
    let client = try client(.container)
    try rules(#"{"deny": true}"#)
    for ask in [
      { _ = try client.get("x", limit: 1) }, { _ = try client.head("x") }, { _ = try client.list("", after: nil) },
      { _ = try client.put("x", .bytes([1]), .json, when: .absent) }, { try client.delete("x", nil) },
    ] {
      let thrown = #expect(throws: ObjectStoreError.self) { try ask() }
      let error = try #require(thrown)
      #expect(error.status == 403 && !error.isOfOneObject)
      #expect(Disposition(of: error, batch: "b") == .retry && Disposition.isSystemWide(error))
    }
    try rules("{}")
    #expect(try client.put("x", .bytes([1]), .json, when: .absent) != nil)
  }

  @Test func linksExpireWithTheCredentials() throws {
    identity.set(.init(lifeS: 600))
    let client = try client(.container)
    let presigner = try client.presigner(expires: 3_600)
    #expect((500...600).contains(presigner.expiresS))
    #expect(presigner.url(for: "x").contains("X-Amz-Expires=\(presigner.expiresS)&"))
    #expect(try client.presigner(expires: 60).expiresS == 60)
  }

  @Test func playlistSaysWhenItsLinksExpireSooner() throws {
    identity.set(.init(lifeS: 600))
    try store.put("output/s/hls/session.m3u8", Data("#EXTM3U\n#EXTINF:5,\nf.m4s\n#EXT-X-ENDLIST\n".utf8))
    let variables = store.environment.merging(try identity.environment(.container)) { $1 }
    let playlist = ["stitch", "s", "--store", "s3://replay", "--format", "hls", "--presign"]
    let result = try Tool.run(
      EncoderWorker.path, playlist, environment: variables)
    #expect(result.status == 0 && result.text.contains("X-Amz-Security-Token"), "\(result.errors)")
    #expect(result.errors.contains("with the credentials that sign them, not in 3600 s"), "\(result.errors)")
    let short = try Tool.run(
      EncoderWorker.path, playlist + ["--expires", "60"], environment: variables)
    #expect(short.status == 0 && short.errors.isEmpty && short.text.contains("X-Amz-Expires=60&"))
  }
}
