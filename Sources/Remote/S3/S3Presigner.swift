/// Makes presigned URLs of objects, all with the same lifetime and credentials.
package struct S3Presigner: Sendable {
  /// The lifetime of the URLs in seconds: that of the credentials, if it is shorter than the one asked for.
  package let expiresS: Int
  let location: S3Location
  let address: S3Address
  let signer: AWSSigner
  /// Unix milliseconds.
  let now: Int64

  /// Returns a URL that lets its bearer fetch an object.
  package func url(for key: String) -> String {
    let key = location.prefix + key
    let query = signer.presignedQuery(
      host: address.base.host, path: address.path(of: key), expiresS: expiresS, now: now)
    return address.url(of: key, query: query)
  }
}
