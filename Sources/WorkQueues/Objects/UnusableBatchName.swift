/// A name that no queue of names takes.
package struct UnusableBatchName: Error, CustomStringConvertible {
  /// The maximum bytes of a name.
  package static let maximumBytes = 1_024

  let name: String
  let fault: String
  package var description: String { "add \(name.prefix(80)): its name \(fault); name it otherwise" }

  /// - Throws: this error.
  package static func check(_ name: String) throws(UnusableBatchName) {
    if let fault = fault(of: name) { throw UnusableBatchName(name: name, fault: fault) }
  }

  /// Returns the reason why a name is unusable; nil if it is usable.
  package static func fault(of name: String) -> String? {
    if name.isEmpty { return "is missing or empty" }
    if name.utf8.count > maximumBytes { return "is longer than \(maximumBytes) bytes" }
    return name.utf8.contains(0) ? "holds a NUL" : nil
  }
}
