// Words of commands in messages.

extension String {
  /// The text as one word of a shell command: in single quotes, unless all its characters are plain.
  package var shellWord: String {
    let isPlain =
      !isEmpty
      && utf8.allSatisfy { byte in
        let isLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
        return isLetter || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "/._-+=:,@%".utf8.contains(byte)
      }
    return isPlain ? self : shellQuoted
  }

  /// The text in single quotes, as one word of a shell command.
  package var shellQuoted: String { "'\(replacing("'", with: "'\\''"))'" }
}
