import JSON

/// A difference between a session and its manifests.
package struct Problem: Sendable, Equatable {
  package let file: String
  package let what: String

  package init(file: String, what: String) { (self.file, self.what) = (file, what) }

  package var json: JSONValue { .object(["file": .string(file), "problem": .string(what)]) }
}
