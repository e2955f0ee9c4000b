import Synchronization

/// The functions of a C library that is loaded when they are first needed. For any thread.
package final class DynamicLibrary<Functions: Sendable>: Sendable {
  private let name: String
  private let package: String?
  private let load: @Sendable () -> Result<Functions, LoadFailure>
  private let loaded = Mutex<Functions?>(nil)

  /// Why a library could not be loaded, as the dynamic linker says it.
  package struct LoadFailure: Error {
    let reason: String

    package init(_ reason: UnsafePointer<CChar>) { self.reason = String(cString: reason) }
  }

  /// - Parameters:
  ///   - name: what to call it in messages.
  ///   - package: the Debian package that has it.
  package init(
    _ name: String, package: String? = nil, load: @escaping @Sendable () -> Result<Functions, LoadFailure>
  ) {
    self.name = name
    self.package = package
    self.load = load
  }

  /// - Throws: ``MissingLibrary``. It is tried again then: what is short now (descriptors, memory) may not be so later.
  package func functions() throws(MissingLibrary) -> Functions {
    try loaded.withLock { (loaded) throws(MissingLibrary) in
      if let loaded { return loaded }
      switch load() {
      case .success(let functions):
        loaded = functions
        return functions
      case .failure(let failure): throw MissingLibrary(name: name, reason: failure.reason, package: package)
      }
    }
  }
}

/// A library that is needed for what was asked cannot be loaded: the machine's fault.
package struct MissingLibrary: Error, CustomStringConvertible {
  let name: String
  let reason: String
  /// The Debian package that has it.
  let package: String?

  package var description: String {
    "load \(name): \(reason); install it" + (package.map { " (Debian: \($0))" } ?? "")
  }
}
