// A stream of records without a header. Each record has an instant of 8 bytes, a length of 4 bytes, and an image. OpenReplay
// writes numbers with the lowest byte first, and instants in unix milliseconds. Rejourney writes numbers with the highest byte
// first, and instants in milliseconds from the session's start.

/// The records of a stream, read as OpenReplay's or as Rejourney's.
struct FrameStream {
  enum Record {
    case whole(instant: Int64, Range<Int>)
    case empty
    case cut(wanted: Int, there: Int)
  }

  let isRejourney: Bool
  package private(set) var records: [Record] = []
  /// Bytes of the records that have an image and a plausible instant.
  package private(set) var understood = 0

  /// Reads the stream in the byte order with more understood bytes.
  ///
  /// - Returns: nil if the container is no stream, or neither byte order gives an image.
  init?(of source: BatchSource, limits: Limits) throws {
    guard let stream = source.contents.stream else { return nil }
    // One record beyond the limit is enough to refuse the batch.
    let readings = [false, true].map { FrameStream(stream, isRejourney: $0, limit: limits.entries + 1) }
    guard let best = readings.max(by: { $0.understood < $1.understood }), best.understood > 0 else { return nil }
    guard best.records.count <= limits.entries else {
      throw BadBatch("read", source.name, "more than \(limits.entries) records", advice: Limits.advice("entries"))
    }
    self = best
  }

  private init(_ stream: [UInt8], isRejourney: Bool, limit: Int) {
    self.isRejourney = isRejourney
    var offset = 0
    while stream.count - offset >= 12, records.count < limit {
      let instant = Int64(bitPattern: Self.number(stream[offset..<offset + 8], isRejourney))
      let length = Int(Self.number(stream[offset + 8..<offset + 12], isRejourney))
      let there = stream.count - offset - 12
      // In the wrong byte order, instants are implausible.
      guard (isRejourney ? 0..<100_000_000_000 : 1_000_000_000_000..<4_000_000_000_000).contains(instant) else { break }
      let image = offset + 12..<offset + 12 + min(length, there)
      if length == 0 {
        records.append(.empty)
      } else if length > there {
        guard ImageKind.isImage(stream[image].prefix(16)) else { break }
        records.append(.cut(wanted: length, there: there))
      } else {
        records.append(.whole(instant: instant, image))
        if ImageKind.isImage(stream[image].prefix(16)) { understood += 12 + length }
      }
      offset = image.upperBound
    }
    let rest = stream.count - offset
    if rest > 0, rest < 12 { records.append(.cut(wanted: 12, there: rest)) }
  }

  private static func number(_ bytes: ArraySlice<UInt8>, _ isHighestFirst: Bool) -> UInt64 {
    (isHighestFirst ? Array(bytes) : bytes.reversed()).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Returns the records as frames of a batch.
  ///
  /// - Parameters:
  ///   - name: the prefix of the frames' names.
  ///   - epoch: the zero of the instants, in unix milliseconds.
  package func draft(named name: String, epoch: Int64) -> BatchDraft {
    var draft = BatchDraft()
    draft.isListed = true
    for (index, record) in records.enumerated() {
      let source = "\(name)#\(index)"
      switch record {
      case .whole(let instant, let range):
        let timeMs = epoch.addingReportingOverflow(instant)
        draft.frames.append(
          Frame(
            source: source, path: StreamContents.name(of: range), timeMs: timeMs.overflow ? -1 : timeMs.partialValue))
      case .empty: draft.refused.append(RefusedFrame(source: source, reason: "an empty record", kind: .record))
      case .cut(let wanted, let there):
        draft.refused.append(
          RefusedFrame(
            source: source, reason: "the record breaks off: \(there) bytes of \(wanted)", kind: .record))
      }
    }
    return draft
  }
}
