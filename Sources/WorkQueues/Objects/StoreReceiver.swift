/// Takes batches into an object store and a queue of names.
package struct StoreReceiver: BatchReceiver {
  private let batches: ObjectBatchRepository
  private let names: any NameQueue

  package init(_ batches: ObjectBatchRepository, _ names: any NameQueue) {
    (self.batches, self.names) = (batches, names)
  }

  package func take(_ tar: [UInt8], as name: String) throws -> Bool {
    let key = ObjectBatchRepository.incoming + name
    if try batches.objects.put(key, .bytes(tar), .archive, when: .absent) == nil {
      // It may be the same batch: an earlier reply may have been lost.
      guard try batches.objects.head(key)?.size == tar.count,
        try batches.objects.get(key, limit: tar.count)?.bytes == tar
      else { return false }
    }
    _ = try names.add([name])
    return true
  }
}
