/// The commands and options of earlier versions that have other names now. A call of one ends with 64 and names its successor, and
/// so does a setting. One version later they are unknown words.
enum FormerNames {
  /// A former name, as the words of a call. The last word is an option, or the row is that of a command.
  struct Row {
    let words: [String]
    let now: String

    init(_ words: String, _ now: String) {
      self.words = words.split(separator: " ").map(String.init)
      self.now = now
    }

    /// The former option; nil in the row of a command.
    var option: String? { words.last.flatMap { $0.hasPrefix("--") ? $0 : nil } }
    /// The words that name the command.
    var command: [String] { words.filter { !$0.hasPrefix("--") } }
    /// The option that stands for the former one, without dashes.
    var newOption: String? {
      now.split(separator: " ").first { $0.hasPrefix("--") }.map { String($0.dropFirst(2)) }
    }
  }

  static let rows = [
    Row("frame", "pictures SESSION --at T --to FILE"),
    Row("sheet", "pictures SESSION --sheet --to FILE"),
    Row("inspect", "encode BATCH… --dry-run"),
    Row("import", "encode BATCH… --output DIR"),
    Row("playlist", "stitch SESSION --store URL --format hls --presign"),
    Row("notify", "quarantine list --events --spool DIR"),
    Row("notify list", "quarantine list --events --spool DIR"),
    Row("notify show", "quarantine show --events --spool DIR KEY…"),
    Row("notify retry", "quarantine retry --events --spool DIR --notify URL KEY…"),
    Row("notify purge", "quarantine purge --events --spool DIR KEY…"),
    Row("encode --from", "encode --files-from FILE"),
    Row("collect --every", "collect --batch-every SECONDS"),
    Row("collect --idle", "collect --end-after-pause SECONDS"),
    Row("pictures --format", "pictures --image-format FORMAT"),
    Row("reencode --time-zone", "reencode --overlay-time-zone ZONE"),
    Row("prune --segments", "prune --retain AGE"),
  ]

  /// Returns the line for a call with such a name, also for one that asks for help or settings; nil for any other call.
  static func answer(to words: [String]) -> String? {
    let asked = ["help", "config"].contains(words.first) ? words.dropFirst() : words[...]
    let options = asked.prefix { $0 != "--" }
    // The longest words that match a call count.
    let meant = rows.filter { row in
      asked.starts(with: row.command)
        && row.option.map { name in options.contains { $0 == name || $0.hasPrefix(name + "=") } } ?? true
    }.max { $0.words.count < $1.words.count }
    return meant.map { "\($0.words.joined(separator: " ")) is now: encoder-worker \($0.now)" }
  }

  /// Returns the row of a setting that an earlier version had: of any command if none has it now, else of a command that ignores it.
  ///
  /// - Parameters:
  ///   - isSetting: whether a command has a setting of that name.
  ///   - command: the name of the command that is called.
  static func row(ofSetting name: String, isSetting: Bool, for command: String) -> Row? {
    rows.first { $0.option == "--" + name && (!isSetting || $0.words[0] == command) }
  }
}
