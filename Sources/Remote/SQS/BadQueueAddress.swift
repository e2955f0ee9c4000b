/// An invalid address of a queue. The message does not repeat it: it may hold a password.
package struct BadQueueAddress: Error, Equatable, CustomStringConvertible {
  let cause: String
  init(_ cause: String) { self.cause = cause }
  package var description: String { "the queue's address: \(cause)" }
}
