import Encoding
import TestSupport
import Testing
import WorkQueues

@testable import Remote

@Suite struct S3SettingsTests {
  @Test func storeAddressHasABucketAndAPrefix() throws {
    #expect(try S3Location("s3://replay").description == "s3://replay/")
    #expect(try S3Location("s3://replay/").prefix == "")
    #expect(try S3Location("s3://a.b-1/x y/z/").prefix == "x y/z/")
  }

  @Test(arguments: [
    "", "replay", "http://replay", "s3://", "s3:///x", "s3://ab", "s3://Replay", "s3://a_b", "s3://-abc", "s3://abc.",
    "s3://a..b", "s3://replay//x", "s3://replay/../x", "s3://replay/./x", "s3://replay/a\nb", "s3://key@replay",
  ])
  func invalidStoreIsRefused(text: String) { #expect(throws: (any Error).self) { try S3Location(text) } }

  @Test(arguments: [
    (["AWS_ENDPOINT_URL": "http://127.0.0.1:9000"], "http://127.0.0.1:9000/replay/a%20b"),
    (["AWS_ENDPOINT_URL": "http://one", "AWS_ENDPOINT_URL_S3": "HTTPS://Two:443/s3/"], "https://two/s3/replay/a%20b"),
    (["AWS_ENDPOINT_URL_S3": "", "AWS_REGION": "eu-west-3"], "https://replay.s3.eu-west-3.amazonaws.com/a%20b"),
    (["AWS_DEFAULT_REGION": "eu-west-3"], "https://replay.s3.eu-west-3.amazonaws.com/a%20b"),
    ([:], "https://replay.s3.us-east-1.amazonaws.com/a%20b"),
  ])
  func environmentSelectsTheEndpoint(environment: [String: String], url: String) throws {
    let address = try S3Address(S3Location("s3://replay"), S3Settings { environment[$0] })
    #expect(address.url(of: "a b") == url)
  }

  @Test func bucketNameWithADotGoesIntoThePath() throws {
    let address = try S3Address(S3Location("s3://re.play"), S3Settings { _ in nil })
    #expect(address.url(of: nil) == "https://s3.us-east-1.amazonaws.com/re.play")
  }

  @Test(arguments: [
    ["AWS_ENDPOINT_URL": "127.0.0.1:9000"], ["AWS_ENDPOINT_URL": "ftp://x"], ["AWS_ENDPOINT_URL": "http://u:p@x"],
    ["AWS_ENDPOINT_URL": "http://x?y"], ["AWS_ENDPOINT_URL": "http://x y"], ["AWS_REGION": "a/b"],
    ["AWS_ACCESS_KEY_ID": "only"], ["AWS_ACCESS_KEY_ID": "a\r\nb", "AWS_SECRET_ACCESS_KEY": "c"],
    ["AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "c", "AWS_SESSION_TOKEN": "a\nb"],
  ])
  func invalidVariableIsNamed(environment: [String: String]) throws {
    let error = #expect(throws: (any Error).self) { try S3Settings { environment[$0] } }
    #expect("\(try #require(error))".contains("AWS_"))
  }

  @Test func entitiesInResponsesAreDecoded() {
    #expect(S3XML.first("Key", in: "<a><Key>&lt;&amp;&#x26;&#38;&quot;&apos;&gt;</Key><Key>x</Key></a>") == "<&&&\"'>")
    for wrong in ["<Key>&none;</Key>", "<Key>&amp</Key>", "<Key>&#xD800;</Key>", "<Key>a<b/></Key>", "<Key>x"] {
      #expect(S3XML.first("Key", in: wrong) == nil, "\(wrong)")
    }
    #expect(S3Address.decoded("a%20b+c%2B%C3%BC") == "a b c+ü")
    for wrong in ["%", "%2", "%zz", "%+1", "%ff"] { #expect(S3Address.decoded(wrong) == nil, "\(wrong)") }
  }

  @Test func playlistWithAForeignFileIsRefused() throws {
    for name in ["../other/session.m3u8", "a/b", "http://x/y", ".hidden", "a b", "a\"b"] {
      let list = StoredPlaylist(session: "s", format: .hls)
      #expect(throws: BadSession.self, "\(name)") { try list.linked("#EXTM3U\n\(name)\n") { $0 } }
      #expect(throws: BadSession.self, "\(name)") { try list.linked("#EXT-X-MAP:URI=\"\(name)\"\n") { $0 } }
    }
    let pack = "../pack-1767859512340-7.mp4"
    #expect(
      try StoredPlaylist(session: "s", format: .hls).linked("#EXT-X-MAP:URI=\"\(pack)\",BYTERANGE=\"9@0\"\n\(pack)") {
        "<\($0)>"
      }
        == "#EXT-X-MAP:URI=\"<output/s/\(pack.dropFirst(3))>\",BYTERANGE=\"9@0\"\n<output/s/\(pack.dropFirst(3))>")
    #expect(
      try StoredPlaylist(session: "s", format: .hls).linked("#EXT-X-MAP:URI=\"i.mp4\"\n#EXTINF:5,\nf.m4s\n") {
        "<\($0)>"
      }
        == "#EXT-X-MAP:URI=\"<output/s/hls/i.mp4>\"\n#EXTINF:5,\n<output/s/hls/f.m4s>\n")
    // Its players would wait for the last segment in vain.
    #expect(StoredPlaylist(session: "s", format: .hls).goesOn("#EXTM3U\nf.m4s\n"))
    #expect(!StoredPlaylist(session: "s", format: .hls).goesOn("#EXTM3U\nf.m4s\n#EXT-X-ENDLIST\n"))
    #expect(
      try StoredPlaylist(session: "s", format: .ffconcat).linked("ffconcat version 1.0\nfile a.mp4\n") { "<\($0)>" }
        == "ffconcat version 1.0\nfile '<output/s/a.mp4>'\n")
  }

  /// The setting is for the store.
  @Test func requestsToSQSAreSignedEvenIfThoseToTheStoreAreNot() throws {
    let none = [
      "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true",
      "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "HOME": "/nonexistent",
    ]
    let result = try Tool.run(
      EncoderWorker.path, ["run", "--drain", "--queue", "sqs://replay", "--store", "s3://replay", "--unsigned"],
      environment: none)
    #expect(result.status == 64 && result.errors.contains("get credentials from"), "\(result.errors)")
  }

  @Test func playlistWithWrongArgumentsIsWrongUsage() throws {
    for wrong in [
      [], ["s"], ["../s", "--store", "s3://replay"],
      ["s", "--store", "replay"], ["s", "--store", "s3://replay", "--expires", "604801"],
      ["s", "--store", "s3://replay"], ["s", "--store", "s3://replay", "--unsigned"],
      ["s", "--store", "s3://replay", "--plain", "--to", "x.m3u8"],
      ["s", "--store", "s3://replay", "--plain", "--from", "+1s"],
    ] {
      let none = [
        "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": "/nonexistent",
      ]
      let result = try Tool.run(
        EncoderWorker.path, ["stitch", "--format", "hls", "--presign"] + wrong, environment: none)
      #expect(result.status == 64 && result.text.isEmpty, "\(wrong): \(result.status)")
    }
    // Options of playlists without one, and a film as a playlist.
    for wrong in [
      ["--store", "s3://replay", "--plain"], ["--plain"], ["--expires", "60"], ["--format", "ffconcat"],
      ["--presign", "--store", "s3://replay", "--plain"],
    ] {
      let result = try Tool.run(EncoderWorker.path, ["stitch", "s", "--to", "film.mp4"] + wrong)
      #expect(result.status == 64 && result.text.isEmpty, "\(wrong): \(result.status)")
    }
  }

  /// A file and the environment serve all calls: they name no store for a path, and nothing of playlists for a film.
  @Test func settingsOfStoresAndPlaylistsAreIgnoredForPaths() throws {
    for path in ["./nowhere", Fixture("gap").path] {
      let result = try Tool.run(
        EncoderWorker.path, ["stitch", path, "--to", "film.mp4"],
        environment: ["ENCODER_WORKER_STORE": "s3://replay", "ENCODER_WORKER_PLAIN": "true"])
      #expect(result.status == 65 && result.errors.contains("OUTPUT/SESSION"), "\(result.errors)")
    }
  }

  @Test(arguments: [
    ["stitch", "sessions/a", "--to", "x.mp4", "--store", "s3://replay"],
    ["pictures", "sessions/a", "--to", "x", "--store", "s3://replay"],
    ["verify", "a", "sessions/b", "--store", "s3://replay"],
    ["reencode", "a.mp4/", "--quality", "small", "--output", "x", "--store", "s3://replay"],
  ])
  func pathWithAStoreIsWrongUsage(words: [String]) throws {
    let result = try Tool.run(EncoderWorker.path, words)
    #expect(
      result.status == 64 && result.errors.contains("is no session's id, which --store needs"), "\(result.errors)")
  }

  @Test func verificationOfAStoreRepairsNothing() throws {
    for words in [["verify", "a"], ["verify"]] {
      let result = try Tool.run(EncoderWorker.path, words + ["--repair", "--store", "s3://replay"])
      #expect(result.status == 64 && result.errors.contains("a worker rebuilds the views"), "\(result.errors)")
    }
    let nothing = try Tool.run(EncoderWorker.path, ["verify"])
    #expect(nothing.status == 64 && nothing.errors.contains("<session-dir>"), "\(nothing.errors)")
    let alone = try Tool.run(EncoderWorker.path, ["verify", "a", "--unsigned"])
    #expect(alone.status == 64 && alone.errors.contains("--unsigned works with --store"), "\(alone.errors)")
  }
}
