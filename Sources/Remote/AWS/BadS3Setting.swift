/// An invalid address of a store, or an invalid variable. The message repeats no password.
package struct BadS3Setting: Error, CustomStringConvertible {
  package let description: String
  init(_ description: String) { self.description = description }
}
