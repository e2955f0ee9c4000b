/// The limits of one batch. They are checked before memory is allocated.
public struct Limits: Sendable {
  /// Bytes of one image file.
  public var fileBytes = 16 << 20
  /// Bytes of all files of one frame: layers, or pixels without a file format.
  public var frameBytes = 128 << 20
  /// Pixels along one side of a picture.
  public var side = 8_192
  /// Pixels of one picture.
  public var pixels = 40_000_000
  /// Frames of one batch.
  public var frames = 3_600
  /// Layers of one frame.
  public var layers = 64
  /// Entries of one batch: frames and all other files, or events of a recording.
  public var entries = 20_000
  /// Pointer events of one batch.
  public var touches = 100_000
  /// Bytes of an archive's content, unpacked.
  public var unpackedBytes = 512 << 20
  /// Maximum ratio of an archive's unpacked size to its packed size. It applies beyond ``bytesOfAnyRatio``.
  public var ratio = 200
  /// Unpacked bytes up to which ``ratio`` does not apply: a few equal frames, or the pixels of an empty screen, compress as well
  /// as a decompression bomb, but are small.
  public var bytesOfAnyRatio = 32 << 20
  /// Bytes of `batch.json`, and of an event of a recording without its long texts.
  public var jsonBytes = 1 << 20
  /// Bytes of a frame's path inside its batch.
  public var pathBytes = 1_024
  /// Bytes of a batch's metadata, which every segment's manifest repeats.
  public var metadataBytes = 64 << 10
  /// Maximum number of refused frames that the manifests of a batch list.
  public var refusals = 1_000
  /// Bytes of each name in that list; longer names are cut.
  public var nameBytes = 255
  /// Segments of one batch; a day of 5-second segments is 17 280.
  public var segments = 20_000
  /// Pictures of a film that is re-encoded.
  public var filmPictures = 4_000_000
  /// The timeout of a decoder, in seconds.
  public var decodeSeconds = 30
  /// Milliseconds between a few captures and all others beyond which the clock has jumped: a leap year.
  public var jumpMs: Int64 = 366 * 86_400_000
  /// The range of instants that can be captures: 2001-01-01 up to 2100-01-01, in unix milliseconds.
  public var instants: Range<Int64> = 978_307_200_000..<4_102_444_800_000

  /// The default limits.
  public init() {}

  /// The clock of this machine, in unix milliseconds; nil if captures are not compared with it.
  package var now: (@Sendable () -> Int64)?

  /// Captures farther apart do not belong into one batch of pictures that come one by one.
  package var pauseMs: Int64 { min(jumpMs, Self.dayMs) }

  /// The instants that are probably captures: not more than a day ahead of this machine's clock.
  package var plausible: Range<Int64> {
    instants.lowerBound..<min(instants.upperBound, now.map { max($0() + Self.dayMs, instants.lowerBound) } ?? .max)
  }

  private static let dayMs: Int64 = 86_400_000

  /// Whether a folder of loose pictures may have more frames and entries than one batch, because its reader splits it: see
  /// ``BatchSessions/parts(_:)``.
  package var splitsFolders = false
  /// Whether the user of a command named the batch: then symbolic links in its folder are followed if they stay inside, and so is the
  /// batch itself. Links that others made are never followed.
  package var followsLinks = false
  /// The largest numbers of frames and entries of a folder that is split.
  package static let ofFolder = (frames: 1_000_000, entries: 4_000_000)

  /// Entries of a folder of loose pictures.
  var folderEntries: Int { splitsFolders ? max(entries, Self.ofFolder.entries) : entries }

  /// Nominal intervals of captures, in milliseconds.
  package static let intervals: ClosedRange<Int64> = 1...3_600_000

  /// The reason why an instant cannot be a capture; nil if it can.
  package func fault(ofInstant timeMs: Int64) -> String? {
    instants.contains(timeMs) ? nil : "instant \(timeMs) lies outside 2001 to 2100"
  }

  /// The largest values that an operator can set.
  package static let maximumSide = 16_384
  package static let maximumPixels = 268_435_456
  package static let maximumBytes = 2_147_000_000

  /// The limits of films: `stitch` and `reencode` read each segment that the worker can write with a higher limit of sides.
  package static var ofFilms: Limits {
    var limits = Limits()
    limits.side = maximumSide
    return limits
  }
  /// The limits of published segments, which any limits of the worker may have let through.
  package static var published: Limits {
    var limits = ofFilms
    limits.pixels = maximumPixels
    return limits
  }
}

extension Limits {
  /// The sessions of a batch at most: each costs a decoder process, an encoder and files of its own.
  static let maximumSessions = 1_000
}
