import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import Glibc
import Remote
import SegmentEncoder

extension PlaylistFormat: ExpressibleByArgument {}

struct PlaylistCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "playlist",
    abstract: "Print a playlist of a session in an object store, with presigned URLs.",
    discussion: """
      Each file becomes a presigned URL: everybody who has the playlist can watch the session until the URLs expire, and nothing else. Set the store's address and the credentials as for Amazon's tools: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
      """)

  @Argument(help: ArgumentHelp("The session's ID.", valueName: "session"))
  var session: String

  @Option(
    help: .setting(
      "The object store.", valueName: "s3://bucket/prefix", example: "s3://bucket", place: .store),
    transform: S3Location.init(_:))
  var store: S3Location

  @Option(help: .setting("Lifetime of the URLs in seconds, at most a week.", valueName: "s"))
  var expires = 3_600

  @Flag(help: .setting("Print unsigned URLs, for public buckets."))
  var plain = false

  @Option(help: "hls or ffconcat.")
  var format = PlaylistFormat.hls

  @OptionGroup var settings: SettingsOption

  func validate() throws {
    if SessionID(session) == nil { throw ValidationError("'\(session)' is no session's id; \(SessionID.rule)") }
    guard (1...S3Client.maximumExpiryS).contains(expires) else {
      throw ValidationError("--expires is 1 to \(S3Client.maximumExpiryS) seconds")
    }
  }

  func run() throws {
    let access = try S3Settings.ofEnvironment()
    if access.credentials == nil && !plain {
      throw ValidationError(
        "nothing to sign links with; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or say --plain")
    }
    try reportingFailures {
      let client = try S3Client(store, access)
      let list = StoredPlaylist(session: session, format: format)
      guard let stored = try client.get(list.key, limit: StoredPlaylist.maximumBytes) else {
        throw BadSession(store.name(of: list.key), "no such object", advice: list.advice)
      }
      guard let text = String(validating: stored.bytes, as: UTF8.self) else {
        throw BadSession(store.name(of: list.key), "no text", advice: list.advice)
      }
      let now = WallClock.nowMs
      let linked = try list.linked(text) { key in
        try plain ? client.plainURL(for: key) : client.presignedURL(for: key, expires: expires, now: now)
      }
      // Both the playlist and `answer` end with a line end.
      answer(linked.hasSuffix("\n") ? String(linked.dropLast()) : linked)
    }
  }
}
