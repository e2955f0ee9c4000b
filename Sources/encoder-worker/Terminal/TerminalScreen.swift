import Glibc

/// The size of a terminal.
struct TerminalScreen {
  /// Cells in a line.
  let columns: Int
  let rows: Int

  /// Fails if the descriptor is no terminal that can clear a line.
  init?(of descriptor: Int32) {
    let kind = getenv("TERM").map { String(cString: $0) } ?? ""
    guard isatty(descriptor) == 1, !["", "dumb"].contains(kind) else { return nil }
    var size = winsize()
    let isKnown = ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0
    columns = isKnown && size.ws_col > 0 ? Int(size.ws_col) : 80
    rows = isKnown && size.ws_row > 0 ? Int(size.ws_row) : 24
  }

  /// Returns a text that replaces the screen's contents without flicker. Lines and columns that do not fit are cut off.
  func page(_ text: String) -> String {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).prefix(rows - 1)
    return "\u{1B}[H" + lines.map { $0.prefix(columns - 1) + "\u{1B}[K\n" }.joined() + "\u{1B}[J"
  }
}
