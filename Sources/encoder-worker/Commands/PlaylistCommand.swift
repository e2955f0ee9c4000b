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
      Each file becomes a presigned URL: everybody who has the playlist can watch the session until the URLs expire, and nothing else. URLs expire with the credentials that sign them, if these expire sooner than --expires. The store's address and credentials are set as for Amazon's tools.
      """)

  @Argument(help: ArgumentHelp("The session's ID.", valueName: "session"))
  var session: String

  @Option(
    help: .setting(
      "The object store.", valueName: "s3://bucket/prefix", example: "s3://bucket", place: .store),
    transform: S3Location.init(_:))
  var store: S3Location

  @OptionGroup var access: StoreAccess

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
    if access.unsigned && !plain { throw ValidationError("--unsigned signs no URL; add --plain for unsigned URLs") }
  }

  func run() throws {
    let settings = try access.settings()
    try reportingFailures {
      let client = try S3Client(store, settings)
      let list = StoredPlaylist(session: session, format: format)
      guard let stored = try client.get(list.key, limit: StoredPlaylist.maximumBytes) else {
        throw BadSession(store.name(of: list.key), "no such object", advice: list.advice)
      }
      guard let text = String(validating: stored.bytes, as: UTF8.self) else {
        throw BadSession(store.name(of: list.key), "no text", advice: list.advice)
      }
      let signed = try plain ? nil : client.presigner(expires: expires)
      if let signed, signed.expiresS < expires {
        say(
          "the URLs expire in \(signed.expiresS) s with the credentials that sign them, not in \(expires) s", .warning)
      }
      let linked = try list.linked(text) { signed?.url(for: $0) ?? client.plainURL(for: $0) }
      // Both the playlist and `answer` end with a line end.
      answer(linked.hasSuffix("\n") ? String(linked.dropLast()) : linked)
    }
  }
}
