// The memory in which a decoder leaves its pictures for the worker.

import CLinux
import FileSystem
import FrameBatches
import Glibc
import Synchronization

/// Memory that a worker and its decoder share: slots for one picture each.
/// It is safe: it owns the memory, and only pointers to the slots are unsafe.
@safe package final class PictureSlots: Sendable {
  /// Slots for two pictures that are still shown or compared, one that is being decoded, and slot 0 for when these are in use.
  static let indices = 0..<4
  /// Maximum written bytes of memory that is reused; larger memory goes back to the system.
  private static let keptBytes = 32 << 20

  /// The file of the memory, which a decoder maps, too.
  let descriptor: Int32
  private nonisolated(unsafe) let start: UnsafeMutablePointer<UInt8>
  /// Bytes of one slot.
  let size: Int
  private let state = Mutex(State())

  private struct State {
    /// Bytes written in each slot, as reported.
    var written = indices.map { _ in 0 }
    /// Whether more may be written than was reported.
    var isWrittenUnknown = false
    /// Bytes of each slot that are mapped.
    var mapped = indices.map { _ in 0 }
    /// The slots of pictures in use.
    var taken: Set<Int> = []
  }

  /// Maps a new memory file, and owns it.
  init(_ memory: Int32, limits: Limits) throws {
    // 4:2:0 with sides as decoders round them up, in whole pages.
    let pixels = limits.pixels + 256 * limits.side + 256 * 256
    size = (pixels * 3 / 2 + 4_095) / 4_096 * 4_096
    descriptor = memory
    let all = Self.indices.count * size
    try check("ftruncate", "decoder") { ftruncate(memory, all) }
    // Neither side can truncate a file of fixed size.
    try check("fcntl", "decoder") { clinux_fix_size(memory) }
    guard let mapped = unsafe mmap(nil, all, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0),
      unsafe mapped != MAP_FAILED
    else {
      throw DiskError("mmap", "decoder")
    }
    unsafe start = mapped.assumingMemoryBound(to: UInt8.self)
  }

  deinit {
    unsafe munmap(start, Self.indices.count * size)
    close(descriptor)
  }

  /// Clears the memory for reuse, which costs less than new memory. Returns false when a picture is in use, the memory is large,
  /// or the written size is unknown.
  func clear() -> Bool {
    state.withLock { state in
      guard !state.isWrittenUnknown, state.written.reduce(0, +) <= Self.keptBytes, state.taken.isEmpty else {
        return false
      }
      for (index, bytes) in state.written.enumerated() {
        unsafe memset(start(of: index), 0, bytes)
        // A compromised decoder may have written more than it reported.
        guard clinux_punch(descriptor, index * size + bytes, size - bytes) == 0 else { return false }
      }
      state.written = Self.indices.map { _ in 0 }
      return true
    }
  }

  /// The bytes of all pictures, as the decoder has reported them.
  var usedBytes: Int { state.withLock { $0.written.reduce(0, +) } }

  /// Whether a picture in there is in use.
  var isInUse: Bool { state.withLock { !$0.taken.isEmpty } }

  /// Records the number of bytes written in a slot; nil when it is unknown.
  func recordWrite(_ index: Int, bytes: Int?) {
    state.withLock { state in
      if let bytes {
        state.written[index] = max(state.written[index], bytes)
      } else {
        state.isWrittenUnknown = true
      }
    }
  }

  /// Returns a slot that is not in use; or 0, whose picture the caller copies before it asks for the next one.
  func free() -> Int {
    state.withLock { state in Self.indices.dropFirst().first { !state.taken.contains($0) } ?? 0 }
  }

  func take(_ index: Int) { state.withLock { _ = $0.taken.insert(index) } }

  /// - Parameter memory: the start of the slot.
  func release(_ memory: UnsafeMutablePointer<UInt8>) {
    state.withLock { _ = unsafe $0.taken.remove((memory - start) / size) }
  }

  func start(of index: Int) -> UnsafeMutablePointer<UInt8> { unsafe start + index * size }

  /// A slot to decode into.
  func buffer(_ index: Int) -> SharedPictureBuffer {
    unsafe SharedPictureBuffer(memory(of: index)) { [self] bytes in
      state.withLock { state in
        guard state.mapped[index] < bytes else { return }
        state.mapped[index] = bytes
        unsafe clinux_touch(start(of: index), bytes)
      }
    }
  }

  func memory(of index: Int) -> UnsafeMutableBufferPointer<UInt8> {
    unsafe UnsafeMutableBufferPointer(start: start(of: index), count: size)
  }
}
