// A view of a session: files that are made from its segments. Readers can do without it, and it can be made anew at any time.
// A new view is a file with a type that conforms to SessionView, and an entry in ViewList.

import Encoding
import FileSystem
import FrameBatches

/// Views that sessions have on request. The raw value is a word of ``SessionIndexCache``, so a view's bit never changes.
package struct ViewKinds: OptionSet, Sendable {
  package let rawValue: Int64

  package init(rawValue: Int64) { self.rawValue = rawValue }

  /// Returns the kinds whose switches are on.
  package static func on(_ switches: [(kind: ViewKinds, isOn: Bool)]) -> ViewKinds {
    ViewKinds(switches.filter(\.isOn).map(\.kind))
  }
}

/// A kind of view. It has no state. Each function that writes is called with the session locked.
protocol SessionView: Sendable {
  /// Its bit; empty for a view that every session has.
  var kind: ViewKinds { get }
  /// The directory of its files, in the session's; nil if they lie beside the segments.
  var directory: String? { get }
  /// The files that clients read first, if an object store has the view. A deletion there removes them before all others.
  var entryPoints: [String] { get }
  /// Whether it may list segments later than they are published. Then it is extended even if no segment is new.
  var holdsSegmentsBack: Bool { get }

  /// Whether a session has it. Every worker keeps existing views up to date.
  ///
  /// - Parameter entries: of the session's directory.
  func isPresent(in session: SessionDirectory, _ entries: [Directory.Entry]) throws -> Bool

  /// Whether it can be extended by these segments. All views are asked before one is written.
  func canGrow(by new: NewSegments) -> Bool

  /// Adds segments.
  ///
  /// - Returns: nil if it has to be made from all segments.
  func extend(_ update: ViewUpdate, by new: NewSegments) throws -> ViewOutcome?

  /// Makes it from all segments.
  ///
  /// - Parameters:
  ///   - segments: at least one, in the order of their starts.
  ///   - entries: of the session's directory before the update.
  func rebuild(
    _ update: ViewUpdate, from segments: [PublishedSegment], _ entries: [Directory.Entry]
  ) throws -> ViewOutcome

  /// Takes out the first segments, whose files are still there.
  ///
  /// - Returns: false if it has to be made from all segments.
  func removeFirst(_ update: ViewUpdate, _ removal: FirstSegments) throws -> Bool

  /// Removes it, since the session has no segment.
  ///
  /// - Parameter entries: of the session's directory.
  func remove(from session: SessionDirectory, _ entries: [Directory.Entry]) throws

  /// Removes what it keeps of a session elsewhere in the output.
  func forget(_ session: SessionID, output: String) throws

  /// Returns warnings about new segments.
  func warnings(of new: [PublishedSegment], in session: SessionID) -> [String]

  /// Returns the names in the session's directory that belong to it.
  func names(of segments: [PublishedSegment]) -> [String]

  /// Returns the files whose bytes follow from the manifests alone. `verify` compares them.
  ///
  /// - Parameters:
  ///   - segments: all of the session, at least one, in the order of their starts.
  ///   - removed: the number of earlier segments that were removed.
  ///   - names: in the session's directory.
  func files(
    of segments: [PublishedSegment], behind removed: Int, in session: SessionID, among names: [String]
  ) -> [(name: String, bytes: [UInt8])]
}

extension SessionView {
  var directory: String? { nil }
  var entryPoints: [String] { [] }
  var holdsSegmentsBack: Bool { false }

  func isPresent(in session: SessionDirectory, _ entries: [Directory.Entry]) throws -> Bool {
    try directory.map { try DurableFile.isDirectory(session.path + "/" + $0) } ?? false
  }

  func canGrow(by new: NewSegments) -> Bool { true }

  func remove(from session: SessionDirectory, _ entries: [Directory.Entry]) throws {
    for name in names(of: []) { try DurableFile.removeTree(session.path + "/" + name) }
  }

  func forget(_ session: SessionID, output: String) throws {}

  func warnings(of new: [PublishedSegment], in session: SessionID) -> [String] { [] }

  func names(of segments: [PublishedSegment]) -> [String] { directory.map { [$0] } ?? [] }

  func removeFirst(_ update: ViewUpdate, _ removal: FirstSegments) throws -> Bool { true }

  func files(
    of segments: [PublishedSegment], behind removed: Int, in session: SessionID, among names: [String]
  ) -> [(name: String, bytes: [UInt8])] { [] }
}

/// Segments that the views of a session lack.
struct NewSegments {
  /// The session's index with them.
  let index: IndexText
  /// These, and older segments behind the first of them, in the order of their starts; none if views only list segments that they
  /// held back.
  let added: [PublishedSegment]
  /// The starts of the session's latest segments, in order.
  let starts: [Int64]
  /// The start of the last segment that the views have.
  let lastMs: Int64
  /// Whether all new segments come after that one.
  let areLast: Bool
  /// Returns one of the latest segments.
  let segment: (_ startMs: Int64) throws -> PublishedSegment
}

/// The first segments of a session, which are being removed.
struct FirstSegments {
  /// In the order of their starts, at least one.
  let removed: [PublishedSegment]
  /// The segment behind them, and the last of the session.
  let first: PublishedSegment
  let last: PublishedSegment
  /// The times in `hls/` count from here, in unix milliseconds.
  let originMs: Int64
}

/// The result of an update of views.
struct ViewOutcome {
  /// Warnings about segments whose files are new.
  var warnings: [String] = []
  /// The segments that a view does not list yet; nil if it lists all.
  var heldBack: HeldBack?
}

/// Segments that a view does not list yet, because the next batch may change how long the first of them is shown.
struct HeldBack {
  /// The starts of the first and the last of them.
  let startMs: Int64
  let lastMs: Int64
  /// The time after which they are listed anyway, in milliseconds.
  let waitMs: Int
}
