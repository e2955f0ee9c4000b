import FileSystem

/// The addresses of services in a region: Amazon's, or others that are configured.
struct AWSEndpoints: Sendable {
  let region: String
  let usesFIPS: Bool
  let usesDualStack: Bool
  /// By service.
  private let named: [String: S3Endpoint]

  /// The services whose addresses may be configured.
  private static let services = ["s3", "sqs", "sts"]

  /// - Throws: ``Failure``, which names the variable.
  init(_ environment: AWSEnvironment) throws {
    let region =
      environment["AWS_REGION"] ?? environment["AWS_DEFAULT_REGION"] ?? environment.profile?["region"] ?? "us-east-1"
    guard region.isPlain(and: "-"), region == region.lowercased(), region.utf8.count <= 64 else {
      throw Failure(
        .usage, "AWS_REGION: '\(region.prefix(64).description.oneLine)' is no region; it has a-z, 0-9 and - only")
    }
    self.region = region
    usesFIPS = try environment.isOn("AWS_USE_FIPS_ENDPOINT", profile: "use_fips_endpoint")
    usesDualStack = try environment.isOn("AWS_USE_DUALSTACK_ENDPOINT", profile: "use_dualstack_endpoint")
    var named: [String: S3Endpoint] = [:]
    for service in Self.services { named[service] = try Self.configured(service, environment) }
    self.named = named
    for (flag, name) in [(usesFIPS, "AWS_USE_FIPS_ENDPOINT"), (usesDualStack, "AWS_USE_DUALSTACK_ENDPOINT")]
    where flag && !named.isEmpty {
      throw Failure(.usage, "\(name) is for Amazon's own addresses; unset it, or unset AWS_ENDPOINT_URL")
    }
  }

  /// Reads the address of a service: its own variable, the one of all services, then the same of the profile.
  private static func configured(_ service: String, _ environment: AWSEnvironment) throws -> S3Endpoint? {
    let ignored = "ignore_configured_endpoint_urls"
    if try environment.isOn("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", profile: ignored) { return nil }
    let variables = ["AWS_ENDPOINT_URL_\(service.uppercased())", "AWS_ENDPOINT_URL"]
    let candidates =
      variables.map { ($0, environment[$0]) }
      + [
        ("endpoint_url of \(service) in the profile's services", environment.profile?.endpoint(of: service)),
        ("endpoint_url of the profile", environment.profile?["endpoint_url"]),
      ]
    for case (let name, let text?) in candidates {
      guard let endpoint = S3Endpoint(text) else {
        // The message does not repeat the address: it may hold a password.
        throw Failure(.usage, "\(name) is no http:// or https:// address of a host; leave out user and password")
      }
      return endpoint
    }
    return nil
  }

  /// Returns the configured address of a service (`s3`, `sqs`, `sts`); nil for Amazon's.
  func named(_ service: String) -> S3Endpoint? { named[service] }

  /// Returns the address of a service.
  func base(of service: String) -> S3Endpoint {
    named[service] ?? S3Endpoint(scheme: "https", host: amazonHost(of: service), path: "")
  }

  /// Returns Amazon's host name of a service.
  func amazonHost(of service: String) -> String {
    let (domain, dualStackDomain) = domains
    // In GovCloud the plain names are the FIPS ones; only S3 and the names of IPv6 have both.
    let isFIPSAnyway = region.hasPrefix("us-gov-") && service != "s3" && !usesDualStack
    let label = usesFIPS && !isFIPSAnyway ? service + "-fips" : service
    guard usesDualStack else { return "\(label).\(region).\(domain)" }
    if service == "s3" { return "\(label).dualstack.\(region).\(domain)" }
    return "\(label).\(region).\(dualStackDomain)"
  }

  /// The domains of the region's partition, of IPv4 and of both.
  private var domains: (String, String) {
    Self.partitions.first { region.hasPrefix($0.prefix) }.map { ($0.domain, $0.dualStack) }
      ?? ("amazonaws.com", "api.aws")
  }

  private static let partitions = [
    (prefix: "cn-", domain: "amazonaws.com.cn", dualStack: "api.amazonwebservices.com.cn"),
    (prefix: "eusc-", domain: "amazonaws.eu", dualStack: "api.amazonwebservices.eu"),
    (prefix: "us-iso-", domain: "c2s.ic.gov", dualStack: "api.aws.ic.gov"),
    (prefix: "us-isob-", domain: "sc2s.sgov.gov", dualStack: "api.aws.scloud"),
    (prefix: "us-isof-", domain: "csp.hci.ic.gov", dualStack: "api.aws.hci.ic.gov"),
    (prefix: "eu-isoe-", domain: "cloud.adc-e.uk", dualStack: "api.cloud-aws.adc-e.uk"),
  ]
}
