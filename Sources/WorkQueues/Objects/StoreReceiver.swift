/// Takes batches into an object store and a queue of names.
package struct StoreReceiver: BatchReceiver {
  private let batches: ObjectBatchRepository
  private let names: any NameQueue

  package init(_ batches: ObjectBatchRepository, _ names: any NameQueue) {
    (self.batches, self.names) = (batches, names)
  }

  package func take(_ tar: [UInt8], as name: String) throws -> Bool {
    let key = ObjectBatchRepository.incoming + name
    // The same bytes are the same batch, whichever call has written them.
    guard try batches.objects.putOwn(key, tar, .archive, when: .absent) != nil else { return false }
    _ = try names.add([name])
    return true
  }
}
