import ArgumentParser
import Glibc

/// A settings file: lines `name = value`, comment lines that begin with `#`, empty lines. Values are not quoted; blanks
/// around them are removed.
enum SettingsFile {
  /// In bytes. A named path may be an endless file.
  private static let sizeLimit = 1 << 20

  static func settings(at path: String) throws(ValidationError) -> [Setting] {
    var bytes = try read(path)
    // Some editors write a byte order mark.
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
    guard let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
      throw ValidationError("\(path): not a text in UTF-8; name a file of settings")
    }
    var settings: [Setting] = []
    // Split bytes: to Swift, CR LF is one character.
    for (number, line) in text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
      if let setting = try setting(String(Substring(line)), .file(path, line: number + 1)) { settings.append(setting) }
    }
    return settings
  }

  private static func setting(_ line: String, _ source: Setting.Source) throws(ValidationError) -> Setting? {
    let line = line.trimmed
    if line.isEmpty || line.hasPrefix("#") { return nil }
    guard let sign = line.firstIndex(of: "=") else {
      throw source.error("'\(line)' is no setting; write name = value, as in max-hold = 3000")
    }
    let (name, value) = (String(line[..<sign]).trimmed, String(line[line.index(after: sign)...]).trimmed)
    guard !value.isEmpty else { throw source.error("\(name) has no value; write one, or remove the line") }
    guard !value.contains(" #"), !value.contains("\t#") else {
      throw source.error("'\(value)' has a comment behind it; give the comment a line of its own")
    }
    return Setting(name, value, source)
  }

  private static func read(_ path: String) throws(ValidationError) -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw unreadable(path) }
    defer { close(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(file, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw unreadable(path) }
      if count == 0 { return bytes }
      bytes += buffer[..<count]
      guard bytes.count <= sizeLimit else {
        throw ValidationError("\(path): more than \(sizeLimit) bytes; name a file of settings")
      }
    }
  }

  private static func unreadable(_ path: String) -> ValidationError {
    let cause = String(cString: strerror(errno)).lowercased()
    return ValidationError("read settings \(path): \(cause); fix it, or name another file with --config")
  }
}

extension String {
  /// The text without blanks around it.
  fileprivate var trimmed: String {
    let isInk: (Character) -> Bool = { !$0.isWhitespace }
    guard let first = firstIndex(where: isInk), let last = lastIndex(where: isInk) else { return "" }
    return String(self[first...last])
  }
}
