import SegmentEncoder
import Sessions

/// A page of ListObjectsV2: keys, sizes and tags. One that is not whole is none: it would pass for a store with less in it.
struct ListObjectsPage {
  struct Text {
    let bytes: [UInt8]
    /// The listed objects.
    let subject: String
  }

  /// Keys are within the location.
  let objects: [ObjectInfo]

  init(_ page: Text, _ location: S3Location) throws {
    func wrong(_ what: String) -> ObjectStoreError {
      ObjectStoreError(
        "LIST", page.subject, "an answer that S3 does not give: \(what)",
        advice: "check that the endpoint is an S3 store")
    }
    guard let text = String(validating: page.bytes, as: UTF8.self), text.contains("<ListBucketResult"),
      text.contains("</ListBucketResult>")
    else { throw wrong("no whole list") }
    let isEncoded = S3XML.first("EncodingType", in: text) == "url"
    objects = try S3XML.elements("Contents", in: text).map { entry in
      guard let written = S3XML.first("Key", in: entry), let key = isEncoded ? S3Address.decoded(written) : written,
        key.utf8.starts(with: location.prefix.utf8)
      else { throw wrong("a key that was not asked for") }
      guard let size = S3XML.first("Size", in: entry).flatMap({ Int($0) }), size >= 0,
        let tag = S3XML.first("ETag", in: entry).flatMap({ ObjectTag(s3: $0) })
      else { throw wrong("\(key) without a size or a tag") }
      let own = String(decoding: key.utf8.dropFirst(location.prefix.utf8.count), as: UTF8.self)
      return ObjectInfo(key: own, size: size, tag: tag)
    }
    if objects.isEmpty && S3XML.first("IsTruncated", in: text) == "true" {
      throw wrong("a page without keys, and more to come")
    }
  }
}

extension ObjectTag {
  /// An ETag, which lists and headers may write with or without its quotes.
  ///
  /// - Returns: nil where it is none, and could not go into a header.
  init?(s3 text: String) {
    let bare =
      text.hasPrefix("\"") && text.hasSuffix("\"") && text.utf8.count > 1 ? String(text.dropFirst().dropLast()) : text
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
      }
    let isImmutable = if case .video = self { true } else { false }
    return [
      ("Content-Type", type),
      ("Cache-Control", isImmutable ? "private, max-age=31536000, immutable" : "private, no-cache"),
    ]
  }
}
