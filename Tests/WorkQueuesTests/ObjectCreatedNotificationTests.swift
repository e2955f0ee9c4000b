import Testing

@testable import JSON
@testable import WorkQueues

/// The notifications of object stores, as these write them.
@Suite struct ObjectCreatedNotificationTests {
  private static func read(_ text: String) throws -> ObjectCreatedNotification? {
    ObjectCreatedNotification(try JSONParser.parse(Array(text.utf8)))
  }

  private static func objects(_ keys: String..., bucket: String = "replay") -> [ObjectCreatedNotification.Object] {
    keys.map { .init(bucket: bucket, key: $0) }
  }

  private static let amazon = """
    {"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"eu-west-1","eventTime":"2026-11-27T01:02:03.000Z",\
    "eventName":"ObjectCreated:Put","userIdentity":{"principalId":"AWS:AIDA"},"requestParameters":{"sourceIPAddress":"10.0.0.1"},\
    "responseElements":{"x-amz-request-id":"C3D13FE58DE4C810","x-amz-id-2":"FMyUVURIY8"},"s3":{"s3SchemaVersion":"1.0",\
    "configurationId":"batches","bucket":{"name":"replay","ownerIdentity":{"principalId":"A3NL1KOZZKExample"},\
    "arn":"arn:aws:s3:::replay"},"object":{"key":"prod/incoming/lobby+caf%C3%A9%2B1.tar","size":1024,"eTag":"d41d8cd9",\
    "versionId":"096fKKXTRTtl3on89fVO.nfljtsv6qko","sequencer":"0055AED6DCD90281E5"}}}]}
    """

  private static let eventBridge = """
    {"version":"0","id":"17793124","detail-type":"Object Created","source":"aws.s3","account":"123456789012",\
    "time":"2026-11-27T01:02:03Z","region":"eu-west-1","resources":["arn:aws:s3:::replay"],"detail":{"version":"0",\
    "bucket":{"name":"replay"},"object":{"key":"prod/incoming/a+b%20c.tar","size":5,"etag":"b1946ac9","sequencer":"617f08"},\
    "request-id":"N4N7GDK58NMKJ12R","requester":"123456789012","source-ip-address":"1.2.3.4","reason":"PutObject"}}
    """

  @Test func keysOfAmazonAreDecodedLikeAForm() throws {
    let notification = try #require(try Self.read(Self.amazon))
    #expect(notification.created == Self.objects("prod/incoming/lobby café+1.tar") && notification.others == 0)
  }

  @Test func keysOfEventBridgeAreTakenAsTheyAre() throws {
    #expect(try Self.read(Self.eventBridge)?.created == Self.objects("prod/incoming/a+b%20c.tar"))
    let removed = Self.eventBridge.replacing("Object Created", with: "Object Deleted")
    #expect(try Self.read(removed)?.created == [] && Self.read(removed)?.others == 1)
    #expect(try Self.read(Self.eventBridge.replacing("aws.s3", with: "aws.ec2")) == nil)
  }

  @Test(arguments: [amazon, eventBridge]) func topicWrapsANotificationOnce(inner: String) throws {
    func wrapped(_ text: String) -> String {
      JSONValue.object([
        "Type": .string("Notification"), "MessageId": .string("22b80b92"), "Subject": .string("Amazon S3 Notification"),
        "TopicArn": .string("arn:aws:sns:eu-west-1:123456789012:batches"), "Message": .string(text),
        "Timestamp": .string("2026-11-27T01:02:03.000Z"), "SignatureVersion": .string("1"),
      ]).line
    }
    #expect(try Self.read(wrapped(inner)) == Self.read(inner))
    #expect(try Self.read(wrapped(wrapped(inner))) == nil)
    #expect(try Self.read(wrapped("hello")) == nil)
    #expect(try Self.read(#"{"Type":"SubscriptionConfirmation","Token":"x","Message":"{}"}"#) == nil)
  }

  @Test func testOfAStoreTellsOfNoObject() throws {
    let notification = try Self.read(
      #"{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-11-27T01:02:03.000Z","Bucket":"replay"}"#)
    #expect(notification?.created == [] && notification?.others == 1)
  }

  @Test func notificationOfMinIOIsRead() throws {
    let notification = try Self.read(
      """
      {"EventName":"s3:ObjectCreated:CompleteMultipartUpload","Key":"replay/prod/incoming/a b.tar","Records":[\
      {"eventVersion":"2.0","eventSource":"minio:s3","awsRegion":"","eventTime":"2026-11-27T01:02:03.000Z",\
      "eventName":"s3:ObjectCreated:CompleteMultipartUpload","userIdentity":{"principalId":"minio"},"s3":{\
      "s3SchemaVersion":"1.0","configurationId":"Config","bucket":{"name":"replay","arn":"arn:aws:s3:::replay"},\
      "object":{"key":"prod%2Fincoming%2Fa+b.tar","size":9,"eTag":"5d41402a","contentType":"application/x-tar"}},\
      "source":{"host":"127.0.0.1","port":"","userAgent":"MinIO (linux; amd64)"}}]}
      """)
    #expect(notification?.created == Self.objects("prod/incoming/a b.tar"))
  }

  @Test func keysOfCephAreTakenAsTheyAre() throws {
    let notification = try Self.read(
      """
      {"Records":[{"eventVersion":"2.2","eventSource":"ceph:s3","awsRegion":"default","eventTime":"2026-11-27T01:02:03Z",\
      "eventName":"ObjectCreated:Put","userIdentity":{"principalId":"tester"},"s3":{"s3SchemaVersion":"1.0",\
      "configurationId":"batches","bucket":{"name":"replay","arn":"arn:aws:s3:default::replay"},\
      "object":{"key":"prod/incoming/a b+c%41.tar","size":"1024","eTag":"37b51d19","sequencer":"F7E6D75D","metadata":[]}},\
      "eventId":"1575221657","opaqueData":""},{"eventSource":"ceph:s3","eventName":"ObjectRemoved:Delete",\
      "s3":{"bucket":{"name":"replay"},"object":{"key":"prod/incoming/d.tar"}}}]}
      """)
    #expect(notification?.created == Self.objects("prod/incoming/a b+c%41.tar") && notification?.others == 1)
  }

  @Test(arguments: ["PutObject", "CopyObject", "CompleteMultipartUpload", "DeleteObject", "LifecycleDeletion"])
  func notificationOfR2IsRead(action: String) throws {
    let notification = try Self.read(
      """
      {"account":"3f4b7e3dcab231cbfdaa90a6a28bd548","action":"\(action)","bucket":"replay",\
      "object":{"key":"prod/incoming/a+b.tar","size":65536,"eTag":"c846ff7a"},"eventTime":"2026-11-27T01:02:03.000Z"}
      """)
    let isCreated = !action.hasSuffix("Deletion") && !action.hasPrefix("Delete")
    #expect(notification?.created == (isCreated ? Self.objects("prod/incoming/a+b.tar") : []))
    #expect(notification?.others == (isCreated ? 0 : 1))
  }

  @Test(arguments: [
    "{}", "[]", "1", #""prod/incoming/a.tar""#, #"{"Records":1}"#, #"{"Records":[1]}"#, #"{"Records":[{}]}"#,
    #"{"Records":[{"eventName":"ObjectCreated:Put"}]}"#,
    #"{"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"replay"}}}]}"#,
    #"{"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"replay"},"object":{"key":""}}}]}"#,
    #"{"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"replay"},"object":{"key":"%4"}}}]}"#,
    #"{"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"replay"},"object":{"key":"%ff"}}}]}"#,
    #"{"action":"PutObject","bucket":"replay"}"#, #"{"Type":"Notification"}"#,
    #"{"detail-type":"AWS API Call via CloudTrail","source":"aws.s3","detail":{"eventName":"PutObject"}}"#,
  ])
  func otherJSONIsNoNotification(text: String) throws { #expect(try Self.read(text) == nil) }

  @Test func recordWithoutAUsableKeyDoesNotHideTheOthers() throws {
    func record(_ key: String) -> String {
      #"{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"replay"},"object":{"key":"\#(key)"}}}"#
    }
    let keys = ["prod/incoming/a", "%ff", "", "prod/incoming/b"]
    let notification = try #require(try Self.read("{\"Records\":[1,\(keys.map(record).joined(separator: ","))]}"))
    #expect(notification.created == Self.objects("prod/incoming/a", "prod/incoming/b") && notification.unreadable == 3)
    let batches = NotifiedBatches(notification, in: ObjectPlace(bucket: "replay", prefix: "prod/"))
    #expect(batches.names == ["a", "b"] && batches.unreadable == 3 && batches.ignored == 3)
  }

  @Test func recordsHaveABound() throws {
    let record = #"{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"k"}}}"#
    func records(_ count: Int) -> String {
      "{\"Records\":[" + Array(repeating: record, count: count).joined(separator: ",") + "]}"
    }
    // An object counts once.
    #expect(try Self.read(records(ObjectCreatedNotification.maximumRecords))?.created.count == 1)
    #expect(try Self.read(records(ObjectCreatedNotification.maximumRecords + 1)) == nil)
  }

  @Test func onlyBatchesOfTheStoreAreNamed() throws {
    let keys = [
      "prod/incoming/2026/a.tar", "prod/incoming/.id", "prod/incoming/b.tar.tmp", "prod/incoming/c.part",
      "prod/incoming/folder/", "prod/incoming/a//b", "prod/incoming/../x",
      "prod/incoming/" + String(repeating: "x", count: 256), "prod/output/s/session.json", "prod/receipts/a/1.json",
      "incoming/d.tar", "production/incoming/e.tar", "prod/incoming",
    ]
    let records = keys.map { key in
      JSONValue.object([
        "eventSource": .string("ceph:s3"), "eventName": .string("ObjectCreated:Put"),
        "s3": .object(["bucket": .object(["name": .string("replay")]), "object": .object(["key": .string(key)])]),
      ])
    }
    let notification = try #require(ObjectCreatedNotification(.object(["Records": .array(records)])))
    let batches = NotifiedBatches(notification, in: ObjectPlace(bucket: "replay", prefix: "prod/"))
    #expect(batches.names == ["2026/a.tar"])
    #expect(batches.incomplete == 7 && batches.others == 3 && batches.foreign == 2 && batches.ignored == 12)
    let other = NotifiedBatches(notification, in: ObjectPlace(bucket: "other", prefix: "prod/"))
    #expect(other.names.isEmpty && other.foreign == keys.count)
  }
}
