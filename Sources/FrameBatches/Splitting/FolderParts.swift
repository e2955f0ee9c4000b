// A folder of loose pictures as several batches. Together they make the same film as one batch would: each part ends with the first
// capture of the next.

extension Batch {
  /// Returns when the last picture leaves the screen.
  ///
  /// The frames behind it may still be being written, if they are the last ones of a folder that goes on. Then it is held as if they
  /// were not there, and the next run takes them.
  ///
  /// - Parameter lastMs: the last capture that can be decoded, in unix milliseconds.
  package func end(afterShown lastMs: Int64) -> Int64 {
    guard let folder, folder.shownMs.upperBound == endMs, !isFinal, let last = frames.last, last.timeMs > lastMs else {
      return endMs
    }
    return min(endMs, lastMs + intervalMs)
  }

  /// Returns the batch as one that no other continues.
  package var closed: Batch {
    var batch = self
    batch.folder = nil
    return batch
  }

  /// The time for which the last capture is held.
  package var lastHoldMs: Int64 { endMs - (frames.last?.timeMs ?? endMs) }

  /// Returns the batches that the folder becomes; the batch itself if it is within the limits, or cannot be split.
  ///
  /// The parts have the interval of the whole. The last one has the refused frames and the warnings, so that these are reported when
  /// the folder has grown.
  ///
  /// - Throws: ``BadBatch`` for more frames at one instant than a batch may have.
  func parts(_ limits: PartLimits, most: Int) throws -> [Batch] {
    guard folder != nil else { return [self] }
    let ranges = limits.ranges(of: frames, capture)
    if let crowd = ranges.first(where: { $0.count > most }) {
      throw BadBatch(
        "read", name,
        "\(crowd.count) frames at one instant, \(frames[crowd.lowerBound].timeMs), more than the limit of \(most)",
        advice: Limits.advice("frames", crowd.count, most: 100_000))
    }
    guard ranges.count > 1 else { return [self] }
    let labels = self.labels.divided(at: ranges.map { frames[$0.lowerBound].timeMs })
    return zip(ranges, labels).map { range, labels in
      var part = self
      part.labels = labels
      part.name = "\(session)@\(frames[range.lowerBound].timeMs)"
      part.frames = Array(frames[range])
      part.leftOut.framesBeside += frames.count - range.count
      (part.leftOut.ofSession, part.leftOut.ofInput) = (0, leftOut.ofSession + leftOut.ofInput)
      guard range.upperBound < frames.count else { return part }
      part.endMs = frames[range.upperBound].timeMs
      part.isFinal = false
      (part.refused, part.warnings) = ([], [])
      return part
    }
  }

  /// Returns the first frames of the batch.
  ///
  /// - Parameter new: the others, which cannot be shown yet.
  package func with(first count: Int, refusing new: [RefusedFrame], limits: Limits) -> Batch {
    var beginning = self
    if count < frames.count {
      beginning.endMs = frames[count].timeMs
      beginning.labels = labels.filter { $0.timeMs < beginning.endMs }
    }
    beginning.frames = Array(frames.prefix(count))
    beginning.refused = (refused + new).shortened(to: limits)
    return beginning
  }

  /// Returns the batch without its first frames, which are published.
  ///
  /// - Parameter new: those of these frames that cannot be shown any more.
  package func without(first count: Int, refusing new: [RefusedFrame], limits: Limits) -> Batch {
    var rest = self
    rest.frames = Array(frames.dropFirst(count))
    if count > 0, let first = rest.frames.first { rest.labels = labels.filter { $0.timeMs >= first.timeMs } }
    rest.leftOut.early = new.count(where: \.isEarly)
    rest.refused = (refused + new).shortened(to: limits)
    return rest
  }
}

extension BatchReader {
  /// Returns a reader of another part of the same files.
  package func reading(_ batch: Batch) -> BatchReader {
    var reader = self
    reader.batch = batch
    return reader
  }
}

extension BatchSessions {
  /// Returns the batches that the limits allow: several if a folder of loose pictures is beyond them, else this one.
  ///
  /// - Throws: ``BadBatch``.
  package func parts(_ limits: PartLimits) throws -> [BatchSessions] {
    var refused = refused
    var parts: [BatchReader] = []
    for reader in readers {
      do {
        parts += try reader.batch.parts(limits, most: reader.limits.frames).map(reader.reading)
      } catch let bad as BadBatch where readers.count > 1 {
        refused.append(RefusedSession(session: reader.batch.session.description, error: bad))
      }
    }
    guard let last = parts.last else {
      // A batch without pictures.
      guard let first = refused.first else { return [self] }
      throw first.error
    }
    guard parts.count > readers.count || refused.count > self.refused.count else { return [self] }
    return parts.dropLast().map { BatchSessions(name: $0.batch.name, readers: [$0], refused: []) } + [
      BatchSessions(name: last.batch.name, readers: [last], refused: refused)
    ]
  }
}
