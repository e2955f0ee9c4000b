// Reads the replies of scripts. Redis may lie, or be another server: each reader returns nil for a reply that its script does
// not give.

import FileSystem
import FrameBatches
import WorkQueues

/// An entry as a script returns it.
struct StreamEntry: Equatable {
  let claim: Claim
  /// Why the entry names no batch; nil if it names one.
  let fault: String?
}

/// The reply of a script that takes the next entry.
enum NextEntry: Equatable {
  case entry(StreamEntry)
  case none
  /// There may be more behind many duplicates.
  case duplicates
}

extension RedisReply {
  /// The maximum bytes of a group's ID: seconds, microseconds, and the name of the worker that has made it.
  static let maximumGroupBytes = 500

  /// The SHA-1 of a script, which `SCRIPT LOAD` returns.
  var digest: String? { text.flatMap { $0.utf8.count == 40 && $0.isHexadecimal ? $0 : nil } }

  /// The ID of a group, which each script gets as an argument.
  var group: String? {
    text.flatMap { (1...Self.maximumGroupBytes).contains($0.utf8.count) ? $0 : nil }
  }

  /// The entry of a reply of at least four values: ID, name, attempt, failures; then whether it is a duplicate, and a trace.
  var entry: StreamEntry? {
    guard let values = list, values.count >= 4, let id = values[0].id, case .bytes(let bytes) = values[1],
      let attempt = values[2].count, let failures = values[3].count
    else { return nil }
    let name = String(validating: bytes, as: UTF8.self)
    let fault = name.map(QueuedName.fault) ?? "is no UTF-8"
    let trace = values.count > 5 ? values[5].text.flatMap { TraceParent($0) } : nil
    var claim = Claim(
      id: id, name: name ?? "", attempt: attempt, failures: failures, traceParent: trace)
    // The ID begins with the milliseconds when the name was queued.
    claim.arrivedMs = Int64(id.prefix { $0 != "-" }).flatMap { Claim.instants.contains($0) ? $0 : nil }
    return StreamEntry(claim: claim, fault: fault)
  }

  /// The outcome of taking the next entry.
  var next: NextEntry? {
    switch self {
    case .list: entry.map { .entry($0) }
    case .integer(0): .duplicates
    case .nothing: NextEntry.none
    default: nil
    }
  }

  /// The entries that were taken over.
  ///
  /// - Parameter maximum: the number that was asked for; a longer list is of another server.
  func entries(atMost maximum: Int) -> [StreamEntry]? {
    guard let list, list.count <= maximum else { return nil }
    let entries = list.compactMap(\.entry)
    return entries.count == list.count ? entries : nil
  }

  /// The numbers of entries that all workers hold, and that this worker holds.
  var heldCounts: (all: Int, own: Int)? {
    guard let list, list.count == 2, let all = list[0].count, let own = list[1].count else { return nil }
    return (all, own)
  }

  /// Those of some entries that this worker has lost.
  func lost(of ids: [String]) -> [String]? {
    guard let list, list.count <= ids.count else { return nil }
    let lost = list.compactMap(\.id)
    return lost.count == list.count && Set(ids).isSuperset(of: lost) ? lost : nil
  }
}
