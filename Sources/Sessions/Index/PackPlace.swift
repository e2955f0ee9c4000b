import Encoding
import JSON

/// Where a segment lies in a pack: `pack-<start>.mp4` of its batch, or `pack-<start>-<revision>.mp4`, in an object store.
struct PackPlace: Sendable, Equatable {
  /// The start of the pack's first segment, in unix milliseconds.
  let startMs: Int64
  /// The bytes of its fragment.
  let fragment: Range<Int>
  /// The bytes of its manifest: the text of a manifest's file.
  let manifest: Range<Int>
  /// Packs of one kind begin with the same initialization.
  let kind: String
  /// 0 for the pack of a batch. A pack that replaces earlier objects has another name than they have.
  var revision = 0
  /// When the last segment of a pack that replaces earlier objects was published, in unix milliseconds; 0 if the age of the object tells it.
  var publishedMs: Int64 = 0

  /// Maximum size of a pack, of a fragment and of a manifest, in bytes. Readers refuse larger ones.
  private static let (maximumBytes, maximumFragment, maximumManifest) = (1 << 30, 256 << 20, 64 << 20)

  var file: String { SegmentName.pack(startMs, revision: revision) }

  func isInFile(of other: PackPlace?) -> Bool { startMs == other?.startMs && revision == other?.revision }
}

extension PackPlace {
  /// Groups segments that one request can fetch: those that follow each other in a pack.
  ///
  /// - Parameters:
  ///   - limit: of the bytes of a group with more than one segment.
  ///   - part: what is fetched.
  static func groups(
    of entries: [SessionEntry], limit: Int = 8 << 20, _ part: KeyPath<PackPlace, Range<Int>>
  ) -> [[SessionEntry]] {
    var groups: [[SessionEntry]] = []
    for entry in entries {
      if let pack = entry.pack, let group = groups.last, let first = group[0].pack, first.isInFile(of: pack),
        pack[keyPath: part].upperBound - first[keyPath: part].lowerBound <= limit
      {
        groups[groups.count - 1].append(entry)
      } else {
        groups.append([entry])
      }
    }
    return groups
  }

  /// The instants of packs count from the last multiple of this, in unix milliseconds: two years. So the packs of a session are on one
  /// timeline, whatever comes first, and ticks are whole numbers in players that count with 53 bits.
  private static let originMs: Int64 = 1 << 36

  /// Returns the time of an instant by the clock of packs, both in milliseconds.
  static func clockMs(_ unixMs: Int64) -> Int64 { unixMs % originMs }

  /// The time of the first picture by the clock of packs, in milliseconds.
  var clockMs: Int64 { Self.clockMs(startMs) }

  /// Whether the key frames of packs of a kind carry their parameter sets: then a letter is before its digest.
  static func isInBand(_ kind: String) -> Bool { kind.count > 8 }

  /// As `session.json` lists it.
  var json: JSONValue {
    .object([
      "file": .string(file), "offset": .number(fragment.lowerBound), "bytes": .number(fragment.count),
      "manifestOffset": .number(manifest.lowerBound), "manifestBytes": .number(manifest.count),
    ])
  }

  /// The number of items in a segment's entry.
  static let itemCount = 8

  /// The last items of a segment's entry.
  var items: [JSONValue] {
    [
      .number(startMs), .number(fragment.lowerBound), .number(fragment.count), .number(manifest.lowerBound),
      .number(manifest.count), .number(revision), .number(publishedMs), .string(kind),
    ]
  }

  /// - Parameter items: as of ``items``.
  init(_ items: ArraySlice<JSONValue>) throws(JSONError) {
    let numbers = items.dropLast().compactMap(\.integer)
    guard numbers.count == Self.itemCount - 1, let kind = items.last?.string, (8...9).contains(kind.utf8.count),
      (0...1 << 42).contains(numbers[0]), (0...1 << 42).contains(numbers[6]),
      numbers[1...5].allSatisfy({ (0...Int64(Self.maximumBytes)).contains($0) }),
      (1...Int64(Self.maximumFragment)).contains(numbers[2]), (1...Int64(Self.maximumManifest)).contains(numbers[4])
    else { throw JSONError("entries: no place in a pack") }
    func range(_ first: Int) -> Range<Int> { Int(numbers[first])..<Int(numbers[first] + numbers[first + 1]) }
    self.init(
      startMs: numbers[0], fragment: range(1), manifest: range(3), kind: kind, revision: Int(numbers[5]),
      publishedMs: numbers[6])
  }
}
