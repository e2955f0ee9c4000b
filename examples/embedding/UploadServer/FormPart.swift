import Foundation
import Hummingbird

/// A file of a form.
struct FormPart {
  let name: String
  let fileName: String
  let bytes: [UInt8]

  /// Of a whole form.
  static let (maximumBytes, maximumParts) = (32 << 20, 300)

  /// Reads a body of `multipart/form-data` (RFC 7578), all of whose parts are files.
  ///
  /// - Parameter boundary: the text between its parts, from the header `Content-Type`.
  /// - Throws: an error with status 400 for any other body, 413 for more parts.
  static func all(of body: [UInt8], boundary: String) throws -> [FormPart] {
    // Each part is behind a delimiter. The first one may be at the beginning of the body.
    let body = Data("\r\n".utf8) + Data(body)
    let delimiter = Data("\r\n--\(boundary)".utf8)
    guard var start = body.range(of: delimiter)?.upperBound else { throw malformed }
    var parts: [FormPart] = []
    while !body[start...].starts(with: Data("--".utf8)) {
      guard parts.count < maximumParts else {
        throw HTTPError(.contentTooLarge, message: "more than \(maximumParts) files")
      }
      // The headers of a part have some 100 bytes.
      let headers = start..<min(start + 1_024, body.endIndex)
      guard let gap = body.range(of: Data("\r\n\r\n".utf8), in: headers),
        let end = body.range(of: delimiter, in: gap.upperBound..<body.endIndex)
      else { throw malformed }
      let lines = String(decoding: body[start..<gap.lowerBound], as: UTF8.self)
      guard let name = lines.firstMatch(of: /; name="([^"]*)"/)?.1,
        let fileName = lines.firstMatch(of: /; filename="([^"]*)"/)?.1
      else { throw malformed }
      let bytes = [UInt8](body[gap.upperBound..<end.lowerBound])
      parts.append(FormPart(name: String(name), fileName: String(fileName), bytes: bytes))
      start = end.upperBound
    }
    guard !parts.isEmpty else { throw malformed }
    return parts
  }

  private static var malformed: HTTPError {
    HTTPError(.badRequest, message: "the body is not multipart/form-data with files")
  }
}
