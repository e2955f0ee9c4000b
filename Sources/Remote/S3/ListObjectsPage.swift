import FileSystem
import FrameBatches
import Sessions

enum ListObjectsPage {
  /// Bytes of a key, at most: the limit of S3.
  private static let maximumKeyBytes = 1_024
  /// Bytes of an object, at most: more than the 50 TB of S3. Sums of sizes do not overflow.
  static let maximumObjectBytes = 1 << 46

  /// Parses a response of ListObjectsV2. An incomplete one is an error: its missing objects would seem to be missing in
  /// the store. So is one whose keys do not ascend from `last` on: a caller that goes on behind the last key would never end.
  ///
  /// - Parameters:
  ///   - subject: the listed objects, for errors.
  ///   - prefix: of the keys that were asked for, relative to the location.
  ///   - last: the key behind which the list begins, relative to the location; nil for the first page.
  ///   - nowMs: the time of the response by the store's clock, in unix milliseconds; nil if it does not tell it.
  /// - Returns: objects with keys relative to the location.
  static func parse(
    _ bytes: [UInt8], subject: String, _ location: S3Location, prefix: String, after last: String?, nowMs: Int64?
  ) throws -> [ObjectInfo] {
    func wrong(_ cause: String) -> ObjectStoreError { .invalidResponse("LIST", subject, cause) }
    guard let text = String(validating: bytes, as: UTF8.self), text.contains("<ListBucketResult"),
      text.contains("</ListBucketResult>")
    else { throw wrong("no whole list") }
    let isEncoded = S3XML.first("EncodingType", in: text) == "url"
    var last = last
    let objects = try S3XML.elements("Contents", in: text).map { entry in
      guard let written = S3XML.first("Key", in: entry), let key = isEncoded ? S3Address.decoded(written) : written,
        key.utf8.count <= maximumKeyBytes, key.utf8.starts(with: (location.prefix + prefix).utf8)
      else { throw wrong("a key that was not asked for") }
      guard let size = S3XML.first("Size", in: entry).flatMap({ Int($0) }), (0...maximumObjectBytes).contains(size),
        let tag = S3XML.first("ETag", in: entry).flatMap({ ObjectTag(s3: $0) })
      else { throw wrong("\(key.oneLine) without a size or a tag") }
      let relative = String(decoding: key.utf8.dropFirst(location.prefix.utf8.count), as: UTF8.self)
      if let last, !last.utf8.lexicographicallyPrecedes(relative.utf8) {
        throw wrong("\(relative.oneLine) comes after \(last.oneLine)")
      }
      last = relative
      let writtenMs = instant(of: entry)
      let ageMs = nowMs.flatMap { nowMs in writtenMs.map { max(0, nowMs - $0) } }
      return ObjectInfo(
        key: relative, size: size, tag: tag, ageS: ageMs.map { Int($0 / 1_000) }, modifiedMs: writtenMs)
    }
    if objects.isEmpty && S3XML.first("IsTruncated", in: text) == "true" {
      throw wrong("a page without keys, and more to come")
    }
    return objects
  }

  /// Returns when an object was written, in unix milliseconds; nil if the list does not tell.
  private static func instant(of entry: Substring) -> Int64? {
    guard let text = S3XML.first("LastModified", in: entry), text.utf8.count <= 40,
      case .unixMs(let writtenMs)? = SessionInstant(text)
    else { return nil }
    return writtenMs
  }
}

extension ObjectStoreError {
  static func invalidResponse(_ operation: String, _ subject: String, _ cause: String) -> ObjectStoreError {
    ObjectStoreError(
      operation, subject, "an answer that S3 does not give: \(cause)", advice: "check that the endpoint is an S3 store")
  }
}

extension ObjectTag {
  /// Reads an ETag, which lists and headers may write with or without its quotes. Fails for a text that no header may
  /// have.
  init?(s3 text: String) {
    let isQuoted = text.hasPrefix("\"") && text.hasSuffix("\"") && text.utf8.count > 1
    let bare = isQuoted ? String(text.dropFirst().dropLast()) : text
    guard !bare.isEmpty, bare.utf8.count <= 512, bare.utf8.allSatisfy({ (33...126).contains($0) }) else { return nil }
    self.init(bare.hasPrefix("W/") ? bare : "\"\(bare)\"")
  }
}

extension ObjectKind {
  /// The headers of the object. Objects that are never replaced may be cached.
  var headers: [(name: String, value: String)] {
    let type =
      switch self {
      case .video: "video/mp4"
      case .json: "application/json"
      case .text: "text/plain; charset=utf-8"
      case .playlist: "application/vnd.apple.mpegurl"
      case .archive: "application/octet-stream"
      case .picture: "image/jpeg"
      case .captions: "text/vtt; charset=utf-8"
      }
    let isImmutable =
      switch self {
      case .video, .picture: true
      default: false
      }
    return [
      ("Content-Type", type),
      ("Cache-Control", isImmutable ? "private, max-age=31536000, immutable" : "private, no-cache"),
    ]
  }
}
