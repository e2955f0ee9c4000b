import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import Glibc
import Remote
import SegmentEncoder

/// The options of a playlist of a session in an object store.
struct PresignedPlaylistOptions: ParsableArguments {
  @Flag(
    help: """
      Print the playlist of a session in a store, with presigned URLs; for --format hls and ffconcat. SESSION_DIR is its ID then.
      """)
  var presign = false

  @Option(help: .setting("With --presign: lifetime of the URLs in seconds, at most a week.", valueName: "seconds"))
  var expires = 3_600

  @Flag(help: .setting("With --presign: print unsigned URLs, for public buckets."))
  var plain = false

  func validate() throws {
    guard presign else { return try CallOptions.refuse("--expires", "--plain", without: "--presign") }
    guard (1...S3Client.maximumExpiryS).contains(expires) else {
      throw ValidationError("--expires is 1 to \(S3Client.maximumExpiryS) seconds")
    }
  }

  /// - Throws: wrong usage if a playlist cannot be printed from there.
  func validate(with place: SessionStoreOptions) throws {
    if place.store == nil { throw MissingOption.error("--store <url>", "The object store.") }
    if place.access.unsigned && !plain {
      throw ValidationError("--unsigned signs no URL; add --plain for unsigned URLs")
    }
  }

  /// Prints the playlist of a session.
  func print(session: String, from place: SessionStoreOptions, format: PlaylistFormat) throws {
    guard let store = place.store else { return }
    let settings = try place.access.settings()
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
      say("the URLs expire in \(signed.expiresS) s with the credentials that sign them, not in \(expires) s", .warning)
    }
    let linked = try list.linked(text) { signed?.url(for: $0) ?? client.plainURL(for: $0) }
    if list.goesOn(text) {
      say(
        "\(session) has not ended: its playlist has no end, and may lack the last segment; print it again later, "
          + "or end the session with 'end'")
    }
    // Both the playlist and `answer` end with a line end.
    answer(linked.hasSuffix("\n") ? String(linked.dropLast()) : linked)
  }
}
