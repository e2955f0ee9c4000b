import FileSystem

/// A file's name as text and runs of digits. The names of one recorder differ in their digits only.
struct NumberedName {
  let path: String
  /// The path without the suffix: a picture and its companion of another suffix have one.
  let key: Substring
  /// The name without its suffix, with `#` for each run of digits.
  let form: String
  /// The runs of digits, in order.
  let runs: [Substring]

  init(_ path: String) {
    self.path = path
    key = PictureNames.stem(of: path)
    let stem = PictureNames.parts(of: path).stem
    let bytes = stem.utf8
    var (form, runs) = ([UInt8](), [Substring]())
    var index = bytes.startIndex
    while index < bytes.endIndex {
      guard bytes[index].isDigit else {
        form.append(bytes[index])
        index = bytes.index(after: index)
        continue
      }
      let end = bytes[index...].firstIndex { !$0.isDigit } ?? bytes.endIndex
      form.append(UInt8(ascii: "#"))
      runs.append(stem[index..<end])
      index = end
    }
    (self.form, self.runs) = (String(decoding: form, as: UTF8.self), runs)
  }

  /// Returns a pattern of the name: `fields` in place of the runs, and text as it is.
  ///
  /// - Parameter fields: one for each run; nil for its digits.
  func pattern(_ fields: [String?]) -> String {
    text(fields) { text in text.reduce(into: "") { $0 += "%[]".contains($1) ? "%\($1)" : String($1) } }
  }

  /// Returns a shell's pattern of the name, suffix aside.
  ///
  /// - Parameter fields: one for each run; nil for its digits.
  func glob(_ fields: [String?]) -> String {
    text(fields) { text in
      text.reduce(into: "") { $0 += $1.isLetter || $1.isNumber || "._-+@%=:,".contains($1) ? String($1) : "\\\($1)" }
    }
  }

  private func text(_ fields: [String?], _ literal: (Substring) -> String) -> String {
    let stem = PictureNames.parts(of: path).stem
    var (text, start) = ("", stem.startIndex)
    for (run, field) in zip(runs, fields) {
      text += literal(stem[start..<run.startIndex]) + (field ?? String(run))
      start = run.endIndex
    }
    return text + literal(stem[start...])
  }
}
