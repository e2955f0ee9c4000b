// Decides which pictures of a session become the next batch. Pure: instants in, a plan out.
//
// The newest picture waits for a later one: only then its hold is known. A picture from before the end of the last batch comes too late
// for it, and goes into a batch of its own; the worker publishes that batch unless it overlaps what is published.

import FrameBatches

/// The end of the batches of a session so far.
struct PictureCoverage: Equatable {
  /// The last capture.
  let lastMs: Int64
  let endMs: Int64
  let intervalMs: Int64

  /// Whether a capture overlaps the batches. A small distance is a seam.
  func contains(_ timeMs: Int64) -> Bool { timeMs <= lastMs || 2 * (endMs - timeMs) >= intervalMs }
}

/// The next batch of a session.
struct PictureCut: Equatable {
  /// Pictures of a batch, and their bytes.
  static let (mostPictures, mostBytes) = (60, 128 << 20)

  /// By capture; at least one.
  let timesMs: [Int64]
  let intervalMs: Int64
  let endMs: Int64

  var coverage: PictureCoverage {
    PictureCoverage(lastMs: timesMs[timesMs.count - 1], endMs: endMs, intervalMs: intervalMs)
  }

  /// - Parameters:
  ///   - waiting: the captures that no batch has, in order.
  ///   - most: pictures of the batch.
  ///   - covered: by the batches so far; nil if there are none.
  ///   - holdsNewest: whether the newest picture waits.
  ///   - intervalMs: the nominal interval, if the user states it.
  ///   - jumpMs: captures farther apart are in two batches.
  /// - Returns: nil if there is nothing for a batch.
  init?(
    of waiting: [Int64], most: Int = mostPictures, after covered: PictureCoverage?, holdsNewest: Bool,
    intervalMs stated: Int64? = nil,
    jumpMs: Int64
  ) {
    let late = waiting.prefix { covered?.contains($0) == true }
    let rest = waiting.dropFirst(late.count)
    var taken = late.isEmpty ? rest.prefix(most) : late.prefix(most)
    if let jump = taken.indices.dropFirst().first(where: { taken[$0] - taken[$0 - 1] > jumpMs }) {
      taken = taken[..<jump]
    }
    if holdsNewest && taken.endIndex == waiting.endIndex && late.isEmpty { taken = taken.dropLast() }
    guard let last = taken.last else { return nil }
    // A late picture is held until the next late one: the others are of another time.
    let end = late.isEmpty ? waiting.endIndex : late.endIndex
    let nextMs = taken.endIndex < end ? waiting[taken.endIndex] : nil
    let isNear = nextMs.map { $0 - last <= jumpMs } ?? false
    let known = taken + (isNear ? [nextMs ?? last] : [])
    let intervalMs =
      stated ?? (known.count > 1 ? Batch.nominalInterval(of: Array(known)) : covered?.intervalMs ?? 1_000)
    timesMs = Array(taken)
    self.intervalMs = intervalMs
    endMs = isNear ? nextMs ?? last + intervalMs : last + intervalMs
  }
}
