import FileSystem

/// Address and credentials of a store, as Amazon's tools read them.
package struct S3Settings: Sendable {
  /// Where the bucket stands in an address.
  enum AddressingStyle: String {
    /// In the path of a configured endpoint, in the host name of Amazon's.
    case auto
    case path
    case virtual
  }

  package let aws: AWSSettings
  let addressing: AddressingStyle
  /// Headers of all objects that are written.
  let headers: [StoreHeader]
  /// Seconds without a byte after which a request fails.
  var timeoutS: Int
  var retries = 4
  /// The pause before the first retry.
  var pauseMs = 100
  /// The maximum keys of a list; nil for the store's default.
  var listCount: Int?

  /// Reads settings as Amazon's tools do. Sends no request.
  ///
  /// - Parameters:
  ///   - value: returns an environment variable.
  ///   - isUnsigned: whether requests are sent without a signature.
  ///   - headers: those of all objects that are written.
  ///   - warn: called with a line for the log.
  /// - Throws: ``Failure``, which names the variable.
  package init(
    environment value: (String) -> String?, unsigned isUnsigned: Bool = false, headers: [StoreHeader] = [],
    warn: @escaping @Sendable (String) -> Void = { _ in }
  ) throws {
    self.headers = headers
    let environment = try AWSEnvironment(value)
    aws = try AWSSettings(environment, unsigned: isUnsigned, warn: warn)
    timeoutS = aws.timeoutS
    let style = environment["AWS_S3_ADDRESSING_STYLE"] ?? environment.profile?["s3.addressing_style"] ?? "auto"
    guard let addressing = AddressingStyle(rawValue: style) else {
      throw Failure(.usage, "AWS_S3_ADDRESSING_STYLE is auto, path or virtual")
    }
    self.addressing = addressing
  }

  /// Seconds after which a call is not tried again, and an attempt without a byte ends: a timeout does not multiply with
  /// the retries.
  var deadlineS: Int { 2 * timeoutS }
}
