// The trace of a batch whose sender states it beside the batch, in a header. The bytes of a batch are its producer's. So an extended
// attribute of the file has the trace: it goes with the file through all states of the spool, and ends with it.

import CLinux
import FrameBatches
import Glibc

package enum KeptTrace {
  private static let attribute = "user." + TraceParent.key

  /// Returns the trace that a file has; nil if it has none, or is a link.
  package static func of(_ path: String) -> TraceParent? {
    guard lgetxattr(path, attribute, nil, 0) == TraceParent.length else { return nil }
    var bytes = [UInt8](repeating: 0, count: TraceParent.length)
    let count = bytes.withUnsafeMutableBytes { lgetxattr(path, attribute, $0.baseAddress, $0.count) }
    return count == bytes.count ? TraceParent(String(decoding: bytes, as: UTF8.self)) : nil
  }

  /// Gives an open file its trace. It reaches the disk with the file's next sync.
  ///
  /// - Returns: false if the file system keeps no extended attributes.
  package static func keep(_ trace: TraceParent, with file: Int32) -> Bool {
    Array(trace.description.utf8).withUnsafeBytes { fsetxattr(file, attribute, $0.baseAddress, $0.count, 0) == 0 }
  }
}
