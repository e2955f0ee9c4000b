// A folder of which nothing was taken for a minute: how many files are in it, why the first one is left, and the option that
// helps. Each option is tried on the folder's own names first.

import Batching
import FileSystem
import FrameBatches

/// The fates of the files of a folder.
struct FolderTally {
  /// Files that went to a session.
  var taken = 0
  /// Files from before `--since`.
  var older = 0
  /// Whether the folder itself was reported.
  var isReported = false
  /// The first file that was left, and the first one whose name tells no time.
  private(set) var left: LeftFile?
  private(set) var withoutTime: LeftFile?

  mutating func note(left file: LeftFile) { if left == nil { left = file } }

  mutating func note(withoutTime file: LeftFile) { if withoutTime == nil { withoutTime = file } }
}

/// A folder with nothing that can be taken.
package struct SilentFolder: Sendable {
  package let path: String
  /// The number of files.
  package let files: Int
  package let reason: String
  package let advice: String?

  /// Names on which an option is tried.
  private static let examples = 64

  /// - Returns: nil for a folder of which something was taken, or of which batches of an earlier run have all.
  init?(
    _ scan: FolderScan, _ times: CaptureTimes, _ rules: CollectRules, top: String, spool: String, limits: Limits
  ) {
    guard scan.tally.taken == 0, !scan.tally.isReported else { return nil }
    path = scan.path
    files = scan.count + scan.ignored.count
    if let left = scan.tally.withoutTime ?? scan.tally.left ?? scan.incomplete {
      reason = "\(lastComponent(of: left.name)): \(left.reason)"
      let option =
        scan.tally.withoutTime == nil
        ? nil : Self.option(for: scan.examples(Self.examples), times, top: top, limits: limits)
      advice = option ?? left.advice
    } else if scan.tally.older > 0 {
      (reason, advice) = ("all are older than --since", "start it with an earlier --since to collect them")
    } else if scan.count > 0 {
      return nil
    } else if let below = rules.isRecursive ? nil : PictureFolders(in: scan, but: spool) {
      (reason, advice) = (below.description, "make a session of each folder with --recursive")
    } else if scan.ignored.count > 0 {
      reason = "\(scan.ignored.example): the names of unfinished and hidden files are left"
      advice = "rename each file when it is whole"
    } else if scan.below.isEmpty && scan.folders.isEmpty {
      (reason, advice) = ("no file came", "check where the recorder writes its pictures")
    } else {
      return nil
    }
  }

  /// Returns an option with which the names, or most of them, tell their times; nil if they tell them already, or no option helps.
  private static func option(
    for files: [FolderFile], _ times: CaptureTimes, top: String, limits: Limits
  ) -> String? {
    func read(_ options: InputOptions) -> Int {
      let trial = CaptureTimes(top, options: options, limits: limits)
      return files.count { (try? trial.captured($0)) != nil }
    }
    guard !files.isEmpty, 2 * read(times.options) < files.count else { return nil }
    var options = times.options
    if options.timeZone == nil {
      options.timeZone = ZoneRules(offset: "UTC")
      if 2 * read(options) >= files.count { return "say where it was captured: --time-zone Europe/Berlin" }
    }
    if let guess = NameAdvice.pattern(for: files.map { lastComponent(of: top) + "/" + $0.name }, limits: limits) {
      options.times = .names(guess.pattern)
      if 2 * read(options) >= files.count {
        let zone = guess.needsZone && times.options.timeZone == nil ? " --time-zone Europe/Berlin" : ""
        return "describe the names: --name-time \(guess.pattern.description.shellQuoted)\(zone)"
      }
    }
    options = times.options
    options.times = .modified
    return 2 * read(options) >= files.count ? "use the times of the files: --times mtime" : nil
  }
}

/// The folders below a watched one that have pictures.
package struct PictureFolders: CustomStringConvertible {
  package let count: Int
  private let isMore: Bool
  private let first: String

  /// Folders that are looked at, entries of each, and levels.
  private static let (mostFolders, mostEntries, deepest) = (256, 256, 5)

  /// - Parameter excluded: the path of a folder that is not looked at.
  /// - Returns: nil if none of the first folders has a picture.
  init?(in scan: FolderScan, but excluded: String) {
    let top = scan.path
    var rest = scan.folders[...]
    var looked = 0
    var found: [String] = []
    while looked < Self.mostFolders, let below = rest.popFirst() {
      looked += 1
      guard top + "/" + below != excluded else { continue }
      guard
        let entries = try? Directory(opening: top + "/" + below, followingLinks: false).entries(limit: Self.mostEntries)
      else { continue }
      if entries.contains(where: { $0.kind == .file && PictureNames.isPicture($0.name) }) { found.append(below) }
      guard below.count(where: { $0 == "/" }) + 1 < Self.deepest else { continue }
      rest += entries.filter { $0.kind == .directory && BatchDirectory.isComplete($0.name) }.map {
        below + "/" + $0.name
      }
    }
    guard let first = found.first else { return nil }
    (count, isMore, self.first) = (found.count, !rest.isEmpty, first)
  }

  package var description: String {
    count == 1 && !isMore
      ? "the pictures in the folder \(first) are not collected"
      : "the pictures in \(isMore ? "more than " : "")\(count) folders are not collected, the first in \(first)"
  }
}
