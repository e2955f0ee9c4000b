// An address that lets whoever has it fetch one object for a while: AWS Signature Version 4 in the query. Pure.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html

import ArgumentParser
import SegmentEncoder

struct S3PresignedURL {
  /// A week, in seconds; stores refuse more.
  static let longestS = 604_800

  let address: S3Address
  let region: String
  let credentials: S3Settings.Credentials

  /// - Parameter now: unix milliseconds.
  func url(of key: String, expiresS: Int, now: Int64) -> String {
    let instant = now.dateText.prefix(19).filter { $0 != "-" && $0 != ":" } + "Z"
    let day = String(instant.prefix(8))
    let scope = "\(day)/\(region)/s3/aws4_request"
    var values = [
      "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": "\(credentials.key)/\(scope)", "X-Amz-Date": instant,
      "X-Amz-Expires": String(expiresS), "X-Amz-SignedHeaders": "host",
    ]
    values["X-Amz-Security-Token"] = credentials.token
    let query = S3Address.query(values)
    let request = "GET\n\(address.path(of: key))\n\(query)\nhost:\(address.base.host)\n\nhost\nUNSIGNED-PAYLOAD"
    let text = "AWS4-HMAC-SHA256\n\(instant)\n\(scope)\n\(SHA256.hex(of: Array(request.utf8)))"
    let signature = SHA256.authentication(of: Array(text.utf8), key: signingKey(of: day))
    return address.url(of: key, query: "\(query)&X-Amz-Signature=\(SHA256.hexadecimal(signature))")
  }

  /// What a day's requests to a region are signed with.
  private func signingKey(of day: String) -> [UInt8] {
    [day, region, "s3", "aws4_request"].reduce(Array("AWS4\(credentials.secret)".utf8)) {
      SHA256.authentication(of: Array($1.utf8), key: $0)
    }
  }
}
