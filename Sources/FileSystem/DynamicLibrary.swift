import Synchronization

/// The functions of a C library, which is loaded when they are first needed. For any thread.
package final class DynamicLibrary<Functions: Sendable>: Sendable {
  private let name: String
  private let package: String?
  private let unloaded: Functions
  private let load: @Sendable (inout Functions) -> UnsafePointer<CChar>?
  private let loaded = Mutex<Functions?>(nil)

  /// - Parameters:
  ///   - name: the library and its use, for error messages.
  ///   - package: the Debian package that has it.
  ///   - unloaded: a table without functions.
  ///   - load: fills the table; returns the dynamic linker's message on failure.
  package init(
    _ name: String, package: String? = nil, _ unloaded: Functions,
    load: @escaping @Sendable (inout Functions) -> UnsafePointer<CChar>?
  ) {
    self.name = name
    self.package = package
    self.unloaded = unloaded
    self.load = load
  }

  /// Returns the functions. A call after a failure loads again: descriptors or memory may have been short.
  package func functions() throws(MissingLibrary) -> Functions {
    try loaded.withLock { (loaded) throws(MissingLibrary) in
      if let loaded { return loaded }
      var functions = unloaded
      if let reason = load(&functions) {
        throw MissingLibrary(name: name, reason: String(cString: reason), package: package)
      }
      loaded = functions
      return functions
    }
  }
}

/// A library that cannot be loaded: a fault of the environment.
package struct MissingLibrary: Error, CustomStringConvertible {
  let name: String
  let reason: String
  /// The Debian package that has it.
  let package: String?

  package var description: String {
    "load \(name): \(reason); install it" + (package.map { " (Debian: \($0))" } ?? "")
  }
}
