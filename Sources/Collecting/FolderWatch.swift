import CLinux
import FileSystem
import Glibc

/// Waits for files that are closed or renamed in a folder (inotify(7)). Network file systems tell nothing of other hosts' files,
/// and the system may have no watches left: then a wait ends when its time is over.
package final class FolderWatch: Sendable {
  private let path: String
  private let events: Int32
  private let wakeup: Int32

  package init(_ path: String) throws(DiskError) {
    self.path = path
    wakeup = clinux_wake_descriptor()
    guard wakeup >= 0 else { throw DiskError("eventfd", path) }
    events = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
    renew()
  }

  deinit {
    close(wakeup)
    if events >= 0 { close(events) }
  }

  /// Watches the folder that has the path now; it may be another one than before.
  package func renew() {
    if events >= 0 { inotify_add_watch(events, path, UInt32(IN_MOVED_TO | IN_CLOSE_WRITE)) }
  }

  /// Ends the wait; for any thread.
  package func wake() { clinux_wake(wakeup) }

  /// Waits for events, or for ``wake()``.
  ///
  /// - Returns: the names of the files.
  package func wait(ms: Int) -> Set<String> {
    var polled = [wakeup, events].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    poll(&polled, 2, Int32(clamping: max(0, ms)))
    var count: eventfd_t = 0
    if polled[0].revents != 0 { eventfd_read(wakeup, &count) }
    var names: Set<String> = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while events >= 0, case let count = read(events, &buffer, buffer.count), count > 0 {
      names.formUnion(Self.names(in: buffer[..<count]))
    }
    return names
  }

  /// The names in a run of `struct inotify_event`: 16 bytes, of which the last four are the length of the name, and the name.
  static func names(in bytes: ArraySlice<UInt8>) -> [String] {
    var names: [String] = []
    var rest = bytes
    while rest.count >= 16 {
      let length = Int(rest.dropFirst(12).prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) })
      let name = rest.dropFirst(16).prefix(length).prefix { $0 != 0 }
      if let text = String(validating: name, as: UTF8.self), !text.isEmpty { names.append(text) }
      rest = rest.dropFirst(16 + length)
    }
    return names
  }
}
