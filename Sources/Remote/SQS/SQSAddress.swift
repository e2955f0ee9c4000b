import FileSystem

/// The address of a queue of Amazon SQS, or of a server that speaks its protocol: `sqs://QUEUE`, `sqs://ACCOUNT/QUEUE`, or the URL of
/// the queue, as consoles show it: `https://sqs.eu-west-1.amazonaws.com/123456789012/replay`.
package struct SQSAddress: Sendable, Equatable, CustomStringConvertible {
  static let form = "sqs://QUEUE, sqs://ACCOUNT/QUEUE, or https://sqs.REGION.amazonaws.com/ACCOUNT/QUEUE"

  let name: String
  /// The account that owns the queue, if the address names it.
  let account: String?
  /// The URL of the queue, if the address is one.
  let url: String?
  /// The server of the URL.
  let endpoint: S3Endpoint?
  /// The region in the URL of a queue of Amazon.
  let region: String?

  /// Queues of this kind keep the order within a group of messages.
  var isFIFO: Bool { name.hasSuffix(".fifo") }

  package var description: String { url ?? "sqs://\(account.map { $0 + "/" } ?? "")\(name)" }

  private init(name: String, account: String?, url: String? = nil, endpoint: S3Endpoint? = nil, region: String? = nil) {
    (self.name, self.account, self.url, self.endpoint, self.region) = (name, account, url, endpoint, region)
  }

  /// - Throws: ``Failure``, which does not repeat the address.
  package init(_ text: String) throws(Failure) {
    let scheme = text.prefix { $0 != ":" }.lowercased()
    guard text.dropFirst(scheme.count).hasPrefix("://") else { throw Failure.queueAddress("it has to be \(Self.form)") }
    let rest = text.dropFirst(scheme.count + 3)
    guard !rest.contains("@") else {
      throw Failure.queueAddress("a user or password does not belong into it: credentials are those of the store")
    }
    self = scheme == "sqs" ? try Self.named(rest) : try Self.located(at: text)
  }

  private static func named(_ text: Substring) throws(Failure) -> SQSAddress {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), let last = parts.last else {
      throw Failure.queueAddress("it has to be \(form)")
    }
    let account = parts.count == 2 ? String(parts[0]) : nil
    if let account, account.utf8.count != 12 || !account.isDecimal {
      throw Failure.queueAddress("an account has 12 digits: sqs://123456789012/QUEUE")
    }
    return SQSAddress(name: try name(last), account: account)
  }

  private static func located(at text: String) throws(Failure) -> SQSAddress {
    guard let whole = S3Endpoint(text), text.utf8.count <= 512, let slash = whole.path.lastIndex(of: "/") else {
      throw Failure.queueAddress("it has to be \(form), without ? and #")
    }
    let region = region(of: whole.host)
    guard whole.scheme == "https" || region == nil else {
      throw Failure.queueAddress("queues of Amazon are at https://")
    }
    return SQSAddress(
      name: try name(whole.path[whole.path.index(after: slash)...]), account: nil,
      url: "\(whole.scheme)://\(whole.host)\(whole.path)",
      endpoint: S3Endpoint(scheme: whole.scheme, host: whole.host, path: ""), region: region)
  }

  private static func name(_ text: Substring) throws(Failure) -> String {
    let stem = text.hasSuffix(".fifo") ? text.dropLast(".fifo".count) : text
    guard !stem.isEmpty, text.utf8.count <= 80, stem.isPlain(and: "-_") else {
      throw Failure.queueAddress("a queue's name has 1 to 80 of A-Z a-z 0-9 - _, and may end in .fifo")
    }
    return String(text)
  }

  /// Returns the region in the host of Amazon's queues: `sqs.eu-west-1.amazonaws.com`, `sqs-fips.us-east-1.amazonaws.com`.
  private static func region(of host: String) -> String? {
    let parts = host.split(separator: ".").map(String.init)
    let domains = ["amazonaws.com", "amazonaws.com.cn", "api.aws", "api.amazonwebservices.com.cn"]
    guard parts.count > 3, ["sqs", "sqs-fips"].contains(parts[0]),
      domains.contains(parts[2...].joined(separator: "."))
    else { return nil }
    return parts[1]
  }
}
