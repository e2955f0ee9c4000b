/// The commands of earlier versions that are options of others now. A call of one ends with 64 and names its successor. One version
/// later they are unknown words.
enum FormerCommands {
  /// The longest words that match a call count.
  static let successors: [(words: [String], now: String)] = [
    (["frame"], "pictures SESSION --at T --to FILE"),
    (["sheet"], "pictures SESSION --sheet --to FILE"),
    (["inspect"], "encode BATCH… --dry-run"),
    (["playlist"], "stitch SESSION --store URL --format hls --presign"),
    (["notify"], "quarantine list --events --spool DIR"),
    (["notify", "list"], "quarantine list --events --spool DIR"),
    (["notify", "show"], "quarantine show --events --spool DIR KEY…"),
    (["notify", "retry"], "quarantine retry --events --spool DIR --notify URL KEY…"),
    (["notify", "purge"], "quarantine purge --events --spool DIR KEY…"),
  ]

  /// Returns the line for a call that means such a command, or asks for its help or its settings; nil for any other call.
  static func answer(to words: [String]) -> String? {
    let asked = ["help", "config"].contains(words.first) ? words.dropFirst() : words[...]
    let meant = successors.filter { asked.starts(with: $0.words) }.max { $0.words.count < $1.words.count }
    return meant.map { "\($0.words.joined(separator: " ")) is now: encoder-worker \($0.now)" }
  }
}
