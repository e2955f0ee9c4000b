// The pictures of one session that came one by one, and the batches that they become. All of it is in `ingest/SESSION/`:
//
//   <unix ms>.<kind>   a picture that no batch has, synced before its 201
//   .NAME/             a batch that is being made: pictures that were renamed into it, and last its batch.json
//   .taken             lines `<unix ms> <SHA-256>`: the pictures that batches have; `= <last> <end> <interval>`: what a batch covers
//
// A batch is made in these steps; a crash between two of them loses nothing, and shows nothing twice:
//
//   1. The lines of its pictures and of itself are appended to `.taken`, synced. From now on, a repeated picture is known.
//   2. The pictures are renamed into `.NAME/`, which is synced. After a crash here they are moved back.
//   3. `batch.json` is written there and synced. After a crash here the batch goes on with step 4.
//   4. `.NAME` is renamed to `incoming/NAME`, and both directories are synced.

import FileSystem
import FrameBatches
import Glibc
import WorkQueues

/// Another process collects the pictures of the session.
struct SessionInUse: Error {}

final class PictureSession {
  struct Rules {
    var input = InputOptions()
    var limits = Limits()
    var everyMs = 5_000
    /// Milliseconds without a picture after which the newest one waits no longer.
    var idleMs = 15_000
  }

  /// Lines of `.taken` that are remembered, and bytes of the file.
  private static let (remembered, maximumBytes) = (1_024, 1 << 20)

  let session: SessionID
  private let rules: Rules
  private let spool: Spool
  private let directory: Directory
  private var taken: LineFile
  private var takenLines = 0
  /// Digests by capture: of all that wait, and of the last in batches.
  private var digests: [Int64: String] = [:]
  private var inBatches: [Int64] = []
  private var covered: PictureCoverage?
  /// Names and sizes by capture.
  private var waiting: [Int64: (name: String, bytes: Int)] = [:]
  private var (arrivedMs, cutMs) = (MonotonicClock.milliseconds(), MonotonicClock.milliseconds())

  private var path: String { directory.path }
  /// Bytes of the pictures that no batch has.
  var waitingBytes: Int { waiting.values.reduce(0) { $0 + $1.bytes } }
  var isEmpty: Bool { waiting.isEmpty }
  var idleMs: Int { MonotonicClock.milliseconds() - arrivedMs }

  /// Opens the directory of a session, and finishes what a dead process has begun.
  ///
  /// - Throws: ``SessionInUse``, ``DiskError``.
  init(_ session: SessionID, in spool: Spool, _ rules: Rules) throws {
    (self.session, self.spool, self.rules) = (session, spool, rules)
    let path = spool.pictures + "/\(session)"
    try DurableFile.makeDirectories(path)
    directory = try Directory(opening: path)
    guard try directory.lock() else { throw SessionInUse() }
    taken = try LineFile(opening: path + "/.taken")
    try recover()
  }

  /// Finishes or takes back batches that were begun, and reads what is there.
  private func recover() throws {
    for entry in try directory.entries() where entry.kind == .directory {
      let draft = path + "/" + entry.name
      if DurableFile.isFile(draft + "/" + NativeFormat.description) {
        // A power cut may have kept both names of a renamed picture.
        for file in try Directory(opening: draft).entries() { unlink(path + "/" + file.name) }
        try show(draft)
        continue
      }
      for file in try Directory(opening: draft).entries() where PlainFormat.instant(ofName: file.name) != nil {
        _ = try DurableFile.move(draft + "/" + file.name, to: path + "/" + file.name)
      }
      try directory.sync()
      try DurableFile.removeTree(draft)
    }
    for entry in try directory.entries() where entry.kind == .file {
      guard let timeMs = PlainFormat.instant(ofName: entry.name) else { continue }
      let file = path + "/" + entry.name
      waiting[timeMs] = (entry.name, try DurableFile.size(of: file))
      digests[timeMs] = try SHA256.hex(ofFile: file, cancellation: .never)
    }
    for line in try taken.lines(limit: Self.maximumBytes) {
      takenLines += 1
      let words = line.split(separator: UInt8(ascii: " ")).compactMap { String(validating: $0, as: UTF8.self) }
      if words.count == 2, let timeMs = Int64(words[0]), waiting[timeMs] == nil {
        remember(timeMs, words[1])
      } else if words.count == 4, words[0] == "=", let lastMs = Int64(words[1]), let endMs = Int64(words[2]),
        let intervalMs = Int64(words[3]), waiting[lastMs] == nil
      {
        // A batch whose last picture still waits was never made.
        cover(PictureCoverage(lastMs: lastMs, endMs: endMs, intervalMs: intervalMs))
      }
    }
  }

  private func remember(_ timeMs: Int64, _ digest: String) {
    digests[timeMs] = digest
    inBatches.append(timeMs)
    while inBatches.count > Self.remembered { digests[inBatches.removeFirst()] = nil }
  }

  private func cover(_ coverage: PictureCoverage) {
    if covered.map({ $0.lastMs < coverage.lastMs }) ?? true { covered = coverage }
  }

  /// Takes a picture. It is durable when this returns.
  ///
  /// - Parameters:
  ///   - file: synced; it is moved.
  ///   - kind: the ending of its name.
  func add(_ file: String, at timeMs: Int64, kind: String, digest: String, bytes: Int) throws -> IntakeOutcome {
    if let known = digests[timeMs] { return known == digest ? .known : .conflict }
    let name = "\(timeMs).\(kind)"
    // A file of this name is from a request that failed after its rename.
    if try !DurableFile.move(file, to: path + "/" + name) {
      let there = try SHA256.hex(ofFile: path + "/" + name, cancellation: .never)
      guard there == digest else { return .conflict }
    }
    try directory.sync()
    arrivedMs = MonotonicClock.milliseconds()
    if waiting.isEmpty { cutMs = arrivedMs }
    digests[timeMs] = digest
    waiting[timeMs] = (name, bytes)
    return .taken
  }

  /// Makes the batches that are due. After a failure, open the session again: that takes back what was begun.
  ///
  /// - Parameter isClosing: whether all pictures are due.
  /// - Returns: the names of the batches.
  func cut(isClosing: Bool = false) throws -> [String] {
    var names: [String] = []
    while let plan = nextCut(isClosing: isClosing) {
      names.append(try make(plan))
      cutMs = MonotonicClock.milliseconds()
    }
    return names
  }

  private func nextCut(isClosing: Bool) -> PictureCut? {
    guard !waiting.isEmpty else { return nil }
    let isIdle = isClosing || idleMs >= rules.idleMs
    let isDue = MonotonicClock.milliseconds() - cutMs >= rules.everyMs || waiting.count > PictureCut.mostPictures
    guard isIdle || isDue else { return nil }
    let timesMs = waiting.keys.sorted()
    var bytes = 0
    let fitting = timesMs.prefix { timeMs in
      bytes += waiting[timeMs]?.bytes ?? 0
      return bytes <= PictureCut.mostBytes
    }
    return PictureCut(
      of: timesMs, most: max(1, min(PictureCut.mostPictures, fitting.count)), after: covered, holdsNewest: !isIdle,
      intervalMs: rules.input.intervalMs, jumpMs: rules.limits.pauseMs)
  }

  private func make(_ plan: PictureCut) throws -> String {
    let random = String(UInt64.random(in: 0 ... .max), radix: 36)
    let name = "\(session)@\(plan.timesMs[0]).\(String(repeating: "0", count: 13 - random.utf8.count))\(random)"
    let pictures = plan.timesMs.compactMap { timeMs in waiting[timeMs].map { (timeMs: timeMs, name: $0.name) } }
    try compactTaken()
    let lines = plan.timesMs.map { "\($0) \(digests[$0] ?? "")\n" }.joined()
    let coverage = plan.coverage
    try taken.append(Array("\(lines)= \(coverage.lastMs) \(coverage.endMs) \(coverage.intervalMs)\n".utf8))
    takenLines += plan.timesMs.count + 1

    let draft = path + "/." + name
    try check("mkdir", draft) { mkdir(draft, 0o775) }
    for picture in pictures {
      try check("rename", draft) { rename(path + "/" + picture.name, draft + "/" + picture.name) }
    }
    try Directory(opening: draft).sync()
    let batch = Batch(
      name: name, session: session, intervalMs: plan.intervalMs, endMs: plan.endMs,
      capture: rules.input.capture ?? .interval, isFinal: false,
      frames: pictures.map { Frame(source: $0.name, path: $0.name, timeMs: $0.timeMs) }, refused: [], warnings: [],
      metadata: .object([:]), traceParent: pictures.first.flatMap { KeptTrace.of(draft + "/" + $0.name) })
    let description = draft + "/" + NativeFormat.description
    try DurableFile.replace(description, NativeFormat.description(of: batch), temporary: description + ".part")
    try Directory(opening: draft).sync()
    try show(draft)
    for timeMs in plan.timesMs {
      waiting[timeMs] = nil
      remember(timeMs, digests[timeMs] ?? "")
    }
    cover(coverage)
    return name
  }

  /// Moves a batch that is whole into `incoming/`.
  private func show(_ draft: String) throws {
    let name = String(lastComponent(of: draft).dropFirst())
    if try !DurableFile.move(draft, to: spool.incoming + "/" + name) {
      // The rename is done, but its other half was lost.
      try DurableFile.removeTree(draft)
    }
    try Directory(opening: spool.incoming).sync()
    try directory.sync()
  }

  /// Writes `.taken` anew if it has grown.
  private func compactTaken() throws {
    guard takenLines > 4 * Self.remembered else { return }
    var lines = inBatches.map { "\($0) \(digests[$0] ?? "")\n" }
    if let covered { lines.append("= \(covered.lastMs) \(covered.endMs) \(covered.intervalMs)\n") }
    try DurableFile.replace(path + "/.taken", Array(lines.joined().utf8), temporary: path + "/.taken.part")
    try directory.sync()
    taken = try LineFile(opening: path + "/.taken")
    takenLines = try taken.lines(limit: Self.maximumBytes).count
  }

  /// Removes the directory of a session without pictures. A repeated picture is new from then on.
  func remove() {
    guard waiting.isEmpty else { return }
    unlink(path + "/.taken")
    // A directory with a picture in it stays.
    rmdir(path)
  }
}
