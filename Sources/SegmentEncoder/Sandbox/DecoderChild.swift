// The process that decodes. It locks itself up before it reads the first byte of a stranger's, and ends with the socket.

import CLinux
import Glibc

struct DecoderChild {
  enum Request: Int { case probe, decode }

  /// How a decoded frame came out, first in the answer.
  enum Outcome: Int { case picture, refused, outOfMemory }

  let socket: Int32
  let memory: Int32
  let limits: Limits
  let decoder: PictureDecoder

  /// Seconds of CPU; a batch that needs more gets another process.
  private static let cpuSeconds: UInt64 = 600

  func run() -> Never {
    clinux_die_with_parent()
    guard let slots = try? PictureSlots(memory, limits: limits), lockUp() else { _exit(1) }
    while let question = read() {
      guard let answer = answer(to: question, into: slots) else { _exit(1) }
      write(answer.framed)
    }
    _exit(0)
  }

  private func lockUp() -> Bool {
    // What a picture needs at most: itself in four times 16 bits, and a few copies in 8 bits; beside what is there already.
    let pixels = UInt64(limits.pixels) * 32 + 256 << 20
    guard let size = Self.virtualSize, clinux_limit_memory(size + pixels) == 0, clinux_limit_cpu(Self.cpuSeconds) == 0,
      clinux_limit_files() == 0
    else { return false }
    // Where the kernel cannot do this the limits remain; the host has noticed when it started.
    _ = clinux_only_compute()
    return true
  }

  /// Of this process, in bytes; nil where the kernel does not say.
  private static var virtualSize: UInt64? {
    // The first number is pages (proc_pid_statm(5)); the file has no size of its own.
    let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 64)
    guard Glibc.read(file, &text, text.count) > 0 else { return nil }
    let pages = UInt64(String(decoding: text.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self))
    return pages.map { $0 * UInt64(sysconf(Int32(_SC_PAGESIZE))) }
  }

  /// nil when the question makes no sense.
  private func answer(to question: [UInt8], into slots: PictureSlots) -> WireWriter? {
    var reader = WireReader(question)
    var answer = WireWriter()
    switch (try? reader.int()).flatMap(Request.init) {
    case .probe:
      // Where this is allowed, nothing confines us.
      _ = open("/", O_RDONLY)
    case .decode:
      guard let slot = try? reader.int(), PictureSlots.indices.contains(slot), let look = try? reader.look(),
        let files = try? reader.list({ reader throws(WireReader.Nonsense) in try reader.byteList() })
      else { return nil }
      decode(files, look, into: DecodingSpace(slots.memory(of: slot)), &answer)
    case nil: return nil
    }
    return answer
  }

  private func decode(
    _ files: [[UInt8]], _ look: Look, into space: DecodingSpace, _ answer: inout WireWriter
  ) {
    do {
      let decoded = try decoder.picture(from: files, look, into: space)
      answer.put(Outcome.picture.rawValue)
      answer.put(decoded.picture.lay(into: space))
      answer.put(decoded.notes) { $0.put($1) }
      answer.put(decoded.work)
    } catch let refusal as RefusedPicture {
      answer.put(Outcome.refused.rawValue)
      answer.put(refusal.reason)
    } catch {
      answer.put(Outcome.outOfMemory.rawValue)
    }
  }

  /// What is sent next; nil at the end.
  private func read() -> [UInt8]? {
    guard let head = read(8) else { return nil }
    var reader = WireReader(head)
    guard let count = try? reader.int(), count >= 0 else { return nil }
    return read(count)
  }

  /// So many bytes; nil at the end.
  private func read(_ count: Int) -> [UInt8]? {
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { bytes, received in
      while received < count {
        let part = Glibc.read(socket, bytes.baseAddress! + received, count - received)
        guard part > 0 else { break }
        received += part
      }
    }
    return bytes.count == count ? bytes : nil
  }

  private func write(_ bytes: [UInt8]) {
    var sent = 0
    while sent < bytes.count {
      let part = bytes.withUnsafeBytes { Glibc.write(socket, $0.baseAddress! + sent, $0.count - sent) }
      guard part > 0 else { _exit(1) }
      sent += part
    }
  }
}
