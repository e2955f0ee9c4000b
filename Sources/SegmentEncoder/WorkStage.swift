import FileSystem
import JSON
import Logging

/// A stage of a batch in a worker, in their order. A part of a batch's time belongs to none: waits for a session's lock, for example.
package enum WorkStage: String, Sendable, CaseIterable {
  /// Copying the batch from a store.
  case fetch
  /// Reading the batch, asking whether it is published, and reading and hashing its pictures.
  case read
  /// Decoding pictures, and converting their pixels.
  case decode
  /// Encoding, muxing and writing segments.
  case encode
  /// Publishing segments and manifests.
  case publish
  /// Updating the session's views.
  case views
  /// Handing the event to its receivers, until they have it.
  case notify

  /// The stages of a profile that it consists of.
  fileprivate var parts: [Profile.Stage] {
    switch self {
    case .fetch, .notify: []
    case .read: [.open, .read]
    case .decode: [.decode, .convert, .sandbox]
    case .encode: [.encode, .mux, .write]
    case .publish: [.publish]
    case .views: [.views]
    }
  }
}

/// The time of each stage of one batch.
package struct StageTimes: Sendable, Equatable {
  private var ns: [WorkStage: Int64] = [:]
  /// From the claim to the publication; nil before that.
  var tookMs: Int?

  init() {}

  /// The stages that were measured, in their order.
  var all: [(stage: WorkStage, ns: Int64)] {
    WorkStage.allCases.compactMap { stage in ns[stage].map { (stage: stage, ns: $0) } }
  }

  /// The stage that took longest.
  var longest: (stage: WorkStage, ms: Int)? {
    all.max { $0.ns < $1.ns }.map { (stage: $0.stage, ms: Int($0.ns / 1_000_000)) }
  }

  mutating func add(_ stage: WorkStage, ns time: Int64) { ns[stage, default: 0] += max(0, time) }

  /// Adds the stages of a profile.
  mutating func add(_ profile: Profile) {
    for stage in WorkStage.allCases where !stage.parts.isEmpty { add(stage, ns: profile.wallNs(of: stage.parts)) }
  }

  /// Runs a stage.
  mutating func measure<Result>(_ stage: WorkStage, _ body: () throws -> Result) rethrows -> Result {
    let start = Profile.Span.now
    defer { add(stage, ns: (.now - start).wallNs) }
    return try body()
  }

  /// The milliseconds of the whole and of each stage that took at least one, by name.
  private var milliseconds: [(name: String, ms: Int)] {
    let stages = all.map { (name: $0.stage.rawValue, ms: Int($0.ns / 1_000_000)) }.filter { $0.ms > 0 }
    return (tookMs.map { [(name: "took", ms: $0)] } ?? []) + stages
  }

  /// The facts for the log: `tookMs`, `readMs` and so on.
  var facts: Logger.Metadata {
    Dictionary(milliseconds.map { ($0.name + "Ms", Logger.MetadataValue.stringConvertible($0.ms)) }) { $1 }
  }

  /// The member of an event; nil without a measurement.
  var json: JSONValue? {
    if tookMs == nil { return nil }
    return .object(Dictionary(milliseconds.map { ($0.name, JSONValue.number($0.ms)) }) { $1 })
  }
}
