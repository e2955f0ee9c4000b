import ArgumentParser
import Encoding
import FileSystem
import Films
import FrameBatches
import Reencoding
import Remote
import SegmentEncoder
import Sessions

extension GapRule: ExpressibleByArgument {}

enum StitchFormat: String, ExpressibleByArgument, CaseIterable {
  case mp4, hls, ffconcat

  /// The kind of a playlist; nil for a film.
  var playlist: PlaylistFormat? {
    switch self {
    case .mp4: nil
    case .hls: .hls
    case .ffconcat: .ffconcat
    }
  }
}

struct StitchCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "stitch",
    abstract: "Make one film or an HLS stream of a session.",
    usage: """
      encoder-worker stitch <session-dir> --to <path> [<options>]
      encoder-worker stitch <session> --store <url> --to <path> [<options>]
      encoder-worker stitch <session> --presign --store <url> [<options>]
      """,
    discussion: """
      SESSION_DIR is a published session, or a directory of finished MP4 segments and their Sentry events, as encode reads them. With --store it is the ID of a session in the store: the objects that are needed are copied below TMPDIR for the time of the call.

      mp4: each frame is shown at its capture minus the session's start, without re-encoding. The film has the timing track, and gaps are chapters.
      Other endings of PATH: an animated picture that loops (.gif, .webp), or the picture at --from (.png, .jpg).
      --from and --to-time cut out a part: it begins with the picture on screen, and ends exactly. --from-label begins at a step, a caption or another label.
      --idle cut shortens each time without a change of the picture. --map says which instant each moment of the film shows.
      hls: DIR/multivariant.m3u8, DIR/session.m3u8, DIR/iframes.m3u8 and a CMAF fragment for each segment, at the same times. Players skip gaps. Existing files in DIR are used again.

      --presign prints the playlist of a session in a store instead: for hls, or the list of files for ffmpeg (ffconcat). SESSION_DIR is its ID then. Each file becomes a presigned URL: everybody who has the playlist can watch the session until the URLs expire, and nothing else. URLs expire with the credentials that sign them, if these expire sooner than --expires. The store's address and credentials are set as for Amazon's tools.
      """)

  static let page = HelpPage(
    example: "stitch sessions/9f0c --to film.mp4", required: [["to"], ["store", "to"], ["presign", "store"]],
    common: ["format", "from", "to-time", "speed", "idle", "gaps", "max-side", "json"])

  @OptionGroup var source: SessionSource

  @Option(
    help: .call(
      "The film to write or replace: .mp4, .gif, .webp, .png or .jpg; for hls, the directory.", valueName: "path",
      example: "film.mp4", isNeeded: true),
    completion: .file())
  var to: String?

  @Option(help: "mp4 or hls; with --presign hls or ffconcat.")
  var format = StitchFormat.mp4

  @Option(
    help: .setting(
      "Gaps of the film: hold keeps the picture before the gap, cut leaves the gap out.", default: "hold"))
  var gaps: GapRule?

  @OptionGroup var presigned: PresignedPlaylistOptions
  @OptionGroup var part: ClipOptions

  @Option(
    help: ArgumentHelp(
      "Begin at the label with this text, or with it in its text; for its span, or --duration.", valueName: "text"))
  var fromLabel: String?

  @OptionGroup var idle: IdleOptions
  @OptionGroup var map: MapOptions
  @OptionGroup var size: FilmSizeOptions
  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws {
    if presigned.presign { return try validatePresigned() }
    guard let to else {
      throw MissingOption.error("--to <path>", "The film to write or replace; for hls, the directory.")
    }
    if format == .ffconcat { throw ValidationError("--format ffconcat works with --presign") }
    try requireName("--to", to, such: format == .hls ? "hls" : "film.mp4")
    if format == .mp4, to.hasSuffix(".m3u8") { throw ValidationError("for a playlist: --to DIR --format hls") }
    if format == .mp4 {
      try FilmSizeOptions.requireFilm(to, "stitch")
      try size.validate(for: form)
    }
    if size.maxSide != nil, format == .hls || form == .mp4 {
      throw ValidationError(
        "--max-side is for pictures: stitch copies the video as it is; run reencode --max-side first, or write a .gif or .webp"
      )
    }
    if format == .hls, gaps != nil {
      throw ValidationError("--gaps is for films; in an HLS playlist gaps are marked, and players skip them")
    }
    if format == .hls, !part.isEmpty || fromLabel != nil {
      throw ValidationError(
        "--from, --from-label, --to-time, --duration, --speed and --key-every are for films; HLS has whole segments: use --format mp4"
      )
    }
    if format == .hls, !idle.isEmpty {
      throw ValidationError("--idle is for films; HLS has whole segments: use --format mp4")
    }
    if let fromLabel {
      try requireName("--from-label", fromLabel, such: "'Add to cart'")
      if part.part.from != nil { throw ValidationError("--from and --from-label both say the start: give one of them") }
    }
    try part.requireNoInstant(to)
    let made = format == .mp4 ? form : .mp4
    try part.validate(for: made)
    try idle.validate(for: made, at: part.clip(idle: nil).speed)
    try map.validate(for: made, named: to)
  }

  /// Checks the options of a call that prints a playlist.
  private func validatePresigned() throws {
    if format.playlist == nil { throw ValidationError("--presign is for playlists: add --format hls, or ffconcat") }
    try presigned.validate(with: source.place)
    if SessionID(source.session) == nil {
      throw ValidationError("'\(source.session)' is no session's id; \(SessionID.rule)")
    }
    try CallOptions.refuse("--to", "--gaps", with: "--presign")
    if !part.isEmpty || fromLabel != nil || !idle.isEmpty || !map.isEmpty || size.maxSide != nil {
      throw ValidationError("--presign prints the stored playlist: options of films do not work with it")
    }
  }

  var form: FilmForm { FilmForm(ofName: to ?? "", maxSide: size.maxSide) }

  func execute() throws {
    if presigned.presign, let playlist = format.playlist {
      return try presigned.print(session: source.session, from: source.place, format: playlist)
    }
    guard let to else { return }
    if format == .mp4 { try form.requireEncoder(for: to) }
    try map.check()
    let decoders = try sandbox.videoDecoders()
    try source.withSession(sandbox, decoders, needing: needs(to: to)) { try stitch($0, to: to, decoders) }
  }

  /// Returns the objects of a stored session that the call reads.
  private func needs(to: String) throws -> StoredNeeds {
    guard format == .mp4 else { return StoredNeeds() }
    // A label may be in any manifest.
    return StoredNeeds(part: fromLabel == nil ? try part.part.stored : .whole) {
      try Stitching.videos(of: $0, showing: clip(of: $0).clip, as: form, to: to, gaps: gaps ?? .hold)
    }
  }

  /// Makes the film of a session's directory.
  func film(
    of path: String, to: String, _ decoders: DecoderForkServer?, progress: (Int, Int) throws -> Void
  ) throws -> StitchedSession {
    try Stitching.film(
      of: path, showing: clip(of: path).clip, as: form, to: to, gaps: gaps ?? .hold, decoders: decoders,
      progress: progress)
  }

  /// Returns the part of a session that the film shows, and a note on it.
  private func clip(of path: String) throws -> (clip: Clip, note: String?) {
    let clip = try part.clip(idle: idle.rule())
    guard let fromLabel else { return (clip, nil) }
    return try clip.beginning(
      atLabel: fromLabel, of: path, lengthMs: part.part.duration.flatMap(SessionInstant.length))
  }

  private func stitch(_ path: String, to: String, _ decoders: DecoderForkServer?) throws {
    let form = format == .mp4 ? form : .mp4
    let (clip, note) = try format == .mp4 ? clip(of: path) : (.whole, nil)
    if let note { say("\(source.session): \(note)") }
    let result = try withProgress(in: form.unit) { advance in
      switch format {
      case .mp4:
        try Stitching.film(
          of: path, showing: clip, as: form, to: to, gaps: gaps ?? .hold, decoders: decoders, progress: advance)
      case .hls, .ffconcat: try Stitching.hls(of: path, to: to, decoders: decoders, progress: advance)
      }
    }
    try map.write(result)
    for warning in result.warnings { say("\(source.session): \(warning.file): \(warning.what)") }
    if let idle = result.adviceOnGaps(gaps) { say(idle) }
    let place = format == .hls ? to.asFolder + lastComponent(of: result.file) : to
    results.print(json: result.json, text: result.text(of: form, at: place))
  }
}
