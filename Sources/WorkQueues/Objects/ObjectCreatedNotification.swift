// The notifications that object stores send when an object is created: S3 itself, MinIO and Ceph (`Records`), EventBridge, and R2. SNS
// wraps them.
//
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
// https://developers.cloudflare.com/r2/buckets/event-notifications/

import FileSystem
import FrameBatches
import JSON

/// The objects of which a notification tells.
package struct ObjectCreatedNotification: Sendable, Equatable {
  package struct Object: Sendable, Hashable {
    package let bucket: String
    package let key: String

    package init(bucket: String, key: String) { (self.bucket, self.key) = (bucket, key) }
  }

  /// The maximum of records in one notification. S3 sends one.
  package static let maximumRecords = 1_000

  /// The objects that were created, each once, in their order.
  package private(set) var created: [Object] = []
  /// The number of records of other events: removals, and the test that a store sends when notifications are set up.
  package private(set) var others = 0
  /// The number of records without a usable key.
  package private(set) var unreadable = 0

  /// - Returns: nil if the value is no notification of an object store.
  package init?(_ value: JSONValue) {
    if value.object?["Type"]?.string == "Notification" {
      // SNS, without its raw delivery. It wraps once.
      guard let text = value.object?["Message"]?.string, let inner = try? JSONParser.parse(Array(text.utf8)),
        inner.object?["Type"]?.string != "Notification"
      else { return nil }
      guard let notification = ObjectCreatedNotification(inner) else { return nil }
      self = notification
      return
    }
    guard let members = value.object, read(members) else { return nil }
  }

  /// - Returns: whether the form is known.
  private mutating func read(_ members: [String: JSONValue]) -> Bool {
    if let records = members["Records"]?.array {
      guard records.count <= Self.maximumRecords else { return false }
      unreadable = records.count { !record($0) }
      return unreadable == 0 || unreadable < records.count
    }
    if members["Event"]?.string == "s3:TestEvent" {
      others += 1
      return true
    }
    if let type = members["detail-type"]?.string, members["source"]?.string == "aws.s3" {
      return add(members["detail"], isCreated: type == "Object Created")
    }
    if let action = members["action"]?.string, let bucket = members["bucket"]?.string {
      let isCreated = ["PutObject", "CopyObject", "CompleteMultipartUpload"].contains(action)
      return add(bucket, members["object"]?.object?["key"]?.string, isCreated)
    }
    return false
  }

  /// Adds a record of S3, MinIO or Ceph.
  private mutating func record(_ value: JSONValue) -> Bool {
    guard let members = value.object, let name = members["eventName"]?.string, let entity = members["s3"] else {
      return false
    }
    let event = name.hasPrefix("s3:") ? name.dropFirst(3) : name[...]
    // Ceph writes keys as they are. S3 and MinIO encode them like a form: a plus is a blank.
    let isEncoded = members["eventSource"]?.string != "ceph:s3"
    return add(entity, isCreated: event.hasPrefix("ObjectCreated:"), isEncoded: isEncoded)
  }

  /// - Parameter entity: an object with `bucket.name` and `object.key`.
  private mutating func add(_ entity: JSONValue?, isCreated: Bool, isEncoded: Bool = false) -> Bool {
    let (bucket, object) = (entity?.object?["bucket"]?.object, entity?.object?["object"]?.object)
    var key = object?["key"]?.string
    if isEncoded {
      key = key.flatMap { PercentEncoding.decoded($0, plusIsSpace: true) }.flatMap {
        String(validating: $0, as: UTF8.self)
      }
    }
    guard let name = bucket?["name"]?.string else { return false }
    return add(name, key, isCreated)
  }

  private mutating func add(_ bucket: String, _ key: String?, _ isCreated: Bool) -> Bool {
    guard let key, !key.isEmpty else { return false }
    let object = Object(bucket: bucket, key: key)
    if isCreated {
      if !created.contains(object) { created.append(object) }
    } else {
      others += 1
    }
    return true
  }
}

/// The batches of a store in a notification.
package struct NotifiedBatches: Sendable, Equatable {
  package private(set) var names: [String] = []
  /// The number of objects in `incoming/` that are no complete batches: names that end in `.tmp`, or begin with a dot.
  package private(set) var incomplete = 0
  /// The number of other objects of the store: workers write them.
  package private(set) var others = 0
  /// The number of objects of other buckets, or outside of the store's prefix.
  package private(set) var foreign = 0
  /// The number of records without a usable key.
  package let unreadable: Int

  package init(_ notification: ObjectCreatedNotification, in place: ObjectPlace) {
    unreadable = notification.unreadable
    for object in notification.created {
      guard object.bucket == place.bucket, object.key.hasPrefix(place.prefix) else {
        foreign += 1
        continue
      }
      let key = object.key.dropFirst(place.prefix.count)
      guard key.hasPrefix(ObjectBatchRepository.incoming) else {
        others += 1
        continue
      }
      let name = String(key.dropFirst(ObjectBatchRepository.incoming.count))
      if ObjectBatchRepository.isPlain(name), BatchDirectory.isComplete(lastComponent(of: name)) {
        names.append(name)
      } else {
        incomplete += 1
      }
    }
  }

  /// The number of objects that are not queued.
  package var ignored: Int { incomplete + others + foreign + unreadable }
}

/// A bucket, and the prefix of a store's keys in it: empty, or with a slash at its end.
package struct ObjectPlace: Sendable, Equatable {
  package let bucket: String
  package let prefix: String

  package init(bucket: String, prefix: String) { (self.bucket, self.prefix) = (bucket, prefix) }
}
