// `labels.jsonl` beside the pictures of a batch: a label a line, as in `labels` of `batch.json`.

import FileSystem
import JSON

extension BatchSource {
  package static let labelFile = "labels.jsonl"
  private static let maximumFileBytes = 8 << 20

  /// Reads the labels beside the pictures. Formats do not see their file.
  mutating func takeLabels() throws {
    let names = contents.names.filter { lastComponent(of: $0) == Self.labelFile }
    guard let name = names.first, names.count == 1, contents.topNames.contains(name) else { return }
    let file = try contents.contents(of: name, limit: Self.maximumFileBytes)
    contents = ContentsWithout([name], in: contents)
    switch file {
    case .bytes(let bytes)?: labels.add(lines: bytes, of: name.shortened(to: 255))
    case .refused(let refusal)?: notes.append("\(name.shortened(to: 255)): \(refusal); no label is read")
    case nil: break
    }
  }
}

extension LabelList {
  /// Adds the labels of lines of JSON. A line that is none is left out.
  ///
  /// - Parameter name: of the file, for messages.
  package mutating func add(lines: [UInt8], of name: String) {
    var number = 0
    for line in lines.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      number += 1
      guard !line.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\t") }) else {
        continue
      }
      do throws(JSONError) {
        append(try Label(JSONParser.parse(Array(line))))
      } catch {
        omit("\(name), line \(number): \(error)")
      }
    }
  }
}
