import Testing

@testable import Remote

/// The ages of listed objects: from what the store says, whatever that is.
@Suite struct ListedAgeTests {
  private func age(_ lastModified: String, atMs nowMs: Int64?) throws -> Int? {
    let xml = """
      <ListBucketResult><Contents><Key>a</Key><LastModified>\(lastModified)</LastModified><Size>1</Size>
      <ETag>e</ETag></Contents></ListBucketResult>
      """
    let page = try ListObjectsPage.parse(
      Array(xml.utf8), subject: "s3://b/", S3Location("s3://bucket"), prefix: "", after: nil, nowMs: nowMs)
    return try #require(page.first).ageS
  }

  /// 2026-01-08T09:05:12Z.
  private static let nowMs: Int64 = 1_767_863_112_000

  @Test(arguments: [
    ("2026-01-08T09:05:02.000Z", 10), ("2026-01-08T09:05:02Z", 10), ("2026-01-07T09:05:12.999Z", 86_399),
    // Another clock wrote it.
    ("2027-01-01T00:00:00.000Z", 0), ("9999-12-31T23:59:59Z", nil), ("1970-01-01T00:00:00.000Z", 1_767_863_112),
    ("", nil), ("yesterday", nil), ("+5s", nil), ("2026-01-08 09:05:02", nil),
    (String(repeating: "9", count: 300), nil),
  ])
  func ageIsTheDifferenceToTheTimeOfTheResponse(text: String, seconds: Int?) throws {
    #expect(try age(text, atMs: Self.nowMs) == seconds)
    #expect(try age(text, atMs: nil) == nil)
  }
}
