import CHiredis
import Synchronization
import WorkQueues

/// hiredis: who works from a directory has no need of it.
enum HiredisLibrary {
  private static let loaded = Mutex<chr_library?>(nil)

  static func functions() throws -> chr_library {
    try loaded.withLock { loaded in
      if let loaded { return loaded }
      var functions = chr_library()
      // What is short now (descriptors, memory) may not be so later.
      if let reason = chr_load(&functions) {
        throw MissingRedisLibrary(name: String(cString: chr_name()), reason: String(cString: reason))
      }
      loaded = functions
      return functions
    }
  }
}

/// No queue can be asked on this machine.
struct MissingRedisLibrary: Error, CustomStringConvertible {
  let name: String
  let reason: String
  var description: String {
    "load hiredis, which queues are asked with: \(reason); install it (Debian: \(name.replacing(".so.", with: "")))"
  }
}
