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
  package func functions() throws(Failure) -> Functions { try functions(loading: true) ?? unloaded }

  /// Prepares a process for a fork after which the library may be loaded. `Mutex` keeps the number of its thread in each module: a new
  /// process that first locks here would lock with its own number, and unlock with the inherited one.
  package func prepareFork() { _ = try? functions(loading: false) }

  private func functions(loading: Bool) throws(Failure) -> Functions? {
    try loaded.withLock { (loaded) throws(Failure) in
      if loaded != nil || !loading { return loaded }
      var functions = unloaded
      if let reason = load(&functions) {
        throw Failure.missingLibrary(name, String(cString: reason), package: package)
      }
      loaded = functions
      return functions
    }
  }
}

extension Failure {
  /// A library that cannot be loaded.
  ///
  /// - Parameter package: the Debian package that has it.
  package static func missingLibrary(_ name: String, _ reason: String, package: String?) -> Failure {
    Failure(.environment, "load", name, reason, advice: "install it" + (package.map { " (Debian: \($0))" } ?? ""))
  }
}
