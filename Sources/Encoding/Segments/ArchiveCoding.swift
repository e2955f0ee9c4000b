/// How archives are coded: slowly, each picture by those of ten minutes before it. Measured in `Benchmarks/LIMITS.md`.
package enum ArchiveCoding {
  /// The maximum length of an archive's segment, in milliseconds.
  package static let segmentMs: Int64 = 600_000

  static let preset = "veryslow"

  /// The constant rate factor at which corpus sessions are about as like as with `reencode --quality balanced`.
  static let rateFactor = 23.0

  /// One reference and no reordered pictures, as in all segments, so that repeats and cuts work (``SkipSliceWriter``); motion of
  /// up to 512 pixels, because pages scroll; no 8×8 transform, as in all segments; likeness and not the look of noise (`psy`).
  static let parameters =
    "ref=1:weightp=0:scenecut=0:keyint=infinite:bframes=0:sliced-threads=0:8x8dct=0:psy=0:merange=512"
}
