import Batching
import Collecting
import FileSystem
import Logging

/// The log of a collector.
final class CollectNews {
  /// Milliseconds between two messages on lost versions.
  private static let lostMs = 60_000

  private let logger: Logger
  private var lost: [String: Int] = [:]
  private var lostAtMs: Int?
  private var shortage: String?

  init(_ logger: Logger) { self.logger = logger }

  func log(_ event: Collector.Event) {
    switch event {
    case .published(let batch, let session, let frames, let isFinal):
      logger.info(
        "collected \(count(frames, "picture"))\(isFinal ? ", the session ends" : "")",
        metadata: ["batch": "\(batch)", "session": "\(session)"])
    case .recovered(let batch):
      logger.warning("finished a batch of a collect that was killed", metadata: ["batch": "\(batch)"])
    case .left(let file):
      logger.warning("left where it is: \(file.reason)", metadata: Self.facts(of: file))
    case .withoutTime(let file, let isFirst):
      logger.log(
        level: isFirst ? .warning : .info, "left where it is: \(file.reason)", metadata: Self.facts(of: file))
    case .leftFolder(let folder):
      logger.warning("folder is not collected: \(folder.reason)", metadata: Self.facts(of: folder, as: "folder"))
    case .unremovable(let file):
      logger.warning("collected, but cannot be removed: \(file.error)", metadata: ["file": "\(file.name)"])
    case .lost(let name, let count):
      lost[name, default: 0] += count
    case .inTurn(let names):
      logger.warning(
        "\(names.count) names are written again and again, and become one session",
        metadata: [
          "names": "\(names.prefix(3).joined(separator: ", "))",
          "advice": "if they show several sources, let each have a folder, and use --recursive",
        ])
    case .silent(let folder):
      var facts: Logger.Metadata = ["folder": "\(folder.path)", "files": "\(folder.files)"]
      if let advice = folder.advice { facts["advice"] = "\(advice)" }
      logger.warning("nothing to take in the first minute: \(folder.reason)", metadata: facts)
    case .notRecursive(let folders):
      logger.warning("\(folders)", metadata: ["advice": "--recursive makes a session of each folder"])
    }
  }

  /// Reports versions that were lost: the first ones at once, later ones together.
  ///
  /// - Parameter isDue: whether all are due.
  func logLost(isDue: Bool) {
    let nowMs = MonotonicClock.milliseconds()
    guard let most = lost.max(by: { ($0.value, $1.key) < ($1.value, $0.key) }),
      isDue || lostAtMs.map({ nowMs - $0 >= Self.lostMs }) ?? true
    else { return }
    let total = lost.values.reduce(0, +)
    logger.warning(
      "lost \(count(total, "picture")): replaced or removed before they could be read",
      metadata: ["names": "\(lost.count)", "most": "\(most.key)", "count": "\(most.value)"])
    (lost, lostAtMs) = ([:], nowMs)
  }

  /// Reports once that the system has no watches left.
  func logShortage(of watch: FolderWatch) {
    guard let found = watch.shortage, shortage != found.setting else { return }
    shortage = found.setting
    let wanted = max(found.count * 4, found.setting.hasSuffix("instances") ? 1_024 : 524_288)
    logger.warning(
      "\(found.setting) (\(found.count)) is used up: the other folders are looked at every 2 s",
      metadata: ["advice": "sysctl -w \(found.setting)=\(wanted)"])
  }

  private static func facts(of file: LeftFile, as key: String = "file") -> Logger.Metadata {
    var facts: Logger.Metadata = [key: "\(file.name)"]
    if let advice = file.advice { facts["advice"] = "\(advice)" }
    return facts
  }
}
