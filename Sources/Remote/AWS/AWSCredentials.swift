/// Keys that sign requests.
package struct AWSCredentials: Sendable, Equatable {
  let key: String
  let secret: String
  /// The session token of temporary credentials.
  let token: String?
}
