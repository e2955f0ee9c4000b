import Foundation
import TestSupport
import Testing

@testable import Remote

/// Compares addresses and keys with those of botocore, for the same variables and shared files.
@Suite(.enabled(if: StoreServer.isInstalled, Comment(rawValue: StoreServer.reason))) struct AmazonAddressTests {
  private static let config = """
    [default]
    region = eu-west-3
    services = local
    s3 =
      addressing_style = virtual
    aws_access_key_id = AKIDDEFAULT
    aws_secret_access_key = hush
    # A comment.
    [profile other]
    region=us-gov-west-1
    use_fips_endpoint = true
    [profile plain]
    endpoint_url = http://plain.example:9000/path
    aws_access_key_id = AKIDPLAIN
    aws_secret_access_key = hush
    [services local]
    s3 =
      endpoint_url = http://store.example:9000
    sqs =
      endpoint_url = http://queue.example
    """
  private static let credentials = """
    [other]
    aws_access_key_id = AKIDOTHER
    aws_secret_access_key = hush
    """

  private static let cases: [[String: String]] = [
    ["AWS_DEFAULT_REGION": "eu-west-3"], ["AWS_DEFAULT_REGION": "eu-west-3", "AWS_USE_FIPS_ENDPOINT": "true"],
    ["AWS_DEFAULT_REGION": "us-gov-west-1", "AWS_USE_FIPS_ENDPOINT": "true"], ["AWS_DEFAULT_REGION": "us-gov-west-1"],
    ["AWS_DEFAULT_REGION": "eu-west-3", "AWS_USE_DUALSTACK_ENDPOINT": "true"], ["AWS_DEFAULT_REGION": "cn-north-1"],
    ["AWS_DEFAULT_REGION": "cn-north-1", "AWS_USE_DUALSTACK_ENDPOINT": "true"],
    ["AWS_DEFAULT_REGION": "us-east-2", "AWS_USE_DUALSTACK_ENDPOINT": "true", "AWS_USE_FIPS_ENDPOINT": "true"],
    [
      "AWS_DEFAULT_REGION": "us-gov-west-1", "AWS_USE_DUALSTACK_ENDPOINT": "true", "AWS_USE_FIPS_ENDPOINT": "true",
    ],
    ["AWS_DEFAULT_REGION": "eusc-de-east-1"], ["AWS_DEFAULT_REGION": "us-iso-east-1"],
    ["AWS_DEFAULT_REGION": "eu-west-3", "AWS_ENDPOINT_URL": "http://x:1"],
    ["AWS_DEFAULT_REGION": "eu-west-3", "AWS_ENDPOINT_URL": "http://x:1", "AWS_ENDPOINT_URL_STS": "http://y"],
    ["FILES": "yes"], ["FILES": "yes", "AWS_PROFILE": "other"], ["FILES": "yes", "AWS_PROFILE": "plain"],
    ["FILES": "yes", "AWS_ENDPOINT_URL": "http://x"], ["FILES": "yes", "AWS_ENDPOINT_URL_SQS": "http://y"],
    ["FILES": "yes", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true", "AWS_ENDPOINT_URL": "http://x"],
  ]

  private struct Addresses: Codable, Equatable {
    var s3: String
    var sqs: String
    var sts: String
    var key: String?
  }

  private static let script = """
    import io, json, os, sys
    sys.path.insert(0, sys.argv[1])
    import botocore.session
    from botocore.awsrequest import AWSResponse
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    class Nothing(io.BytesIO):
        def stream(self, **_):
            return []
    for variables in json.load(sys.stdin):
        os.environ.update(variables)
        session = botocore.session.Session()
        found, sent = session.get_credentials(), []
        def answer(request, **_):
            sent.append(request.url)
            return AWSResponse(request.url, 200, {}, Nothing())
        region = session.get_config_variable("region") or "us-east-2"
        keys = {"region_name": region, "aws_access_key_id": "a", "aws_secret_access_key": "b"}
        s3 = session.create_client("s3", **keys)
        s3.meta.events.register("before-send", answer)
        s3.head_object(Bucket="replay", Key="a")
        said = {name: session.create_client(name, **keys).meta.endpoint_url for name in ("sqs", "sts")}
        print(json.dumps(said | {"s3": sent[0], "key": found and found.access_key}))
        for name in variables:
            del os.environ[name]
    """

  @Test func addressesAndKeysEqualThoseOfBotocore() throws {
    let scratch = try ScratchDirectory()
    let files = [
      "AWS_CONFIG_FILE": try scratch.file("config", Array(Self.config.utf8)),
      "AWS_SHARED_CREDENTIALS_FILE": try scratch.file("credentials", Array(Self.credentials.utf8)),
    ]
    let none = [
      "AWS_CONFIG_FILE": scratch.path("none"), "AWS_SHARED_CREDENTIALS_FILE": scratch.path("none"),
    ]
    let cases = Self.cases.map { variables in
      variables.filter { $0.key != "FILES" }
        .merging(variables["FILES"] == nil ? none : files) { $1 }
        .merging(["AWS_EC2_METADATA_DISABLED": "true"]) { $1 }
    }
    let result = try Tool.run(
      Tool.python, ["-B", "-c", Self.script, StoreServer.modules], input: try JSONEncoder().encode(cases))
    let theirs = try result.text.split(separator: "\n").map { line in
      try JSONDecoder().decode(Addresses.self, from: Data(line.utf8))
    }
    try #require(theirs.count == cases.count, "\(result.errors)")
    for (variables, their) in zip(cases, theirs) {
      let settings = try S3Settings { variables[$0] }
      let endpoints = settings.aws.endpoints
      func url(_ service: String) -> String {
        let base = endpoints.base(of: service)
        return "\(base.scheme)://\(base.host)\(base.path)"
      }
      let ours = Addresses(
        s3: try S3Address(S3Location("s3://replay"), settings).url(of: "a"), sqs: url("sqs"), sts: url("sts"),
        key: try? settings.aws.credentials.credentials()?.key)
      #expect(ours == their, "\(variables)")
    }
  }
}
