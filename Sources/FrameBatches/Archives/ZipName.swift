/// Names in zip archives: UTF-8, or code page 437.
enum ZipName {
  /// Bytes 0x80 to 0xFF of code page 437.
  private static let codePage437 = Array(
    "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}"
      .unicodeScalars)

  /// Returns the path of an entry. Backslashes become slashes, because some Windows programs write them between folders.
  ///
  /// Names are code page 437, unless they are valid UTF-8: programs forget the flag of UTF-8, or set it for other names, and names of other
  /// encodings are hardly ever valid UTF-8 by chance. All bytes of code page 437 differ, so names of any encoding stay distinct.
  static func path(_ raw: ArraySlice<UInt8>) -> String {
    var raw = raw
    while raw.starts(with: "./".utf8) || raw.starts(with: ".\\".utf8) { raw = raw.dropFirst(2) }
    let path = String(validating: raw, as: UTF8.self) ?? decoded(raw)
    return String(String.UnicodeScalarView(path.unicodeScalars.map { $0 == "\\" ? "/" : $0 }))
  }

  private static func decoded(_ raw: ArraySlice<UInt8>) -> String {
    String(String.UnicodeScalarView(raw.map { $0 < 0x80 ? Unicode.Scalar($0) : codePage437[Int($0) - 0x80] }))
  }
}
