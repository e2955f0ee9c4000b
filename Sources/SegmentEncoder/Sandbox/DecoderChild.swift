// The process that decodes. It locks itself up before it reads the first byte of a stranger's, and ends with the socket.

import CLinux
import Glibc

struct DecoderChild {
  enum Request: UInt8 {
    case probe = 0x50
    case decode = 0x44
  }

  /// How a decoded frame came out, first in the answer.
  enum Outcome: Int { case picture, refused, outOfMemory }

  let socket: Int32
  let memory: Int32
  let limits: Limits
  let background: Colour

  /// Seconds of CPU for a batch; whoever has more frames gets another process.
  private static let cpuSeconds: UInt64 = 600

  func run() -> Never {
    clinux_die_with_parent()
    guard let slots = try? PictureSlots(memory, limits: limits), lockUp() else { _exit(1) }
    let decoder = PictureDecoder(limits: limits, background: background)
    while let request = read(1)?.first {
      switch Request(rawValue: request) {
      case .probe:
        // Where this is allowed, nothing confines us.
        _ = open("/", O_RDONLY)
        write([1])
      case .decode:
        guard let answer = answer(with: decoder, into: slots) else { _exit(1) }
        var head = WireWriter()
        head.put(answer.count)
        write(head.bytes + answer)
      case nil: _exit(1)
      }
    }
    _exit(0)
  }

  private func lockUp() -> Bool {
    // What a picture needs at most: itself in four times 16 bits, and a few copies in 8 bits; beside what is there already.
    let pixels = UInt64(limits.pixels) * 32 + 256 << 20
    guard clinux_limit_memory(UInt64(Self.virtualSize) + pixels) == 0, clinux_limit_cpu(Self.cpuSeconds) == 0,
      clinux_limit_files() == 0
    else { return false }
    // Where the kernel cannot do this the limits remain; the host has noticed when it started.
    _ = clinux_only_compute()
    return true
  }

  /// Of this process, in bytes.
  private static var virtualSize: Int {
    guard case .bytes(let text)? = try? Directory(opening: "/proc/self").contents(of: "statm", limit: 4_096),
      let pages = Int(String(decoding: text.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self))
    else { return 1 << 30 }
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  /// nil when the question makes no sense.
  private func answer(with decoder: PictureDecoder, into slots: PictureSlots) -> [UInt8]? {
    guard let head = read(8) else { return nil }
    var sizes = WireReader(head)
    guard let count = try? sizes.int(), count >= 0, let bytes = read(count) else { return nil }
    var reader = WireReader(bytes)
    guard let slot = try? reader.int(), let look = try? reader.look(),
      let files = try? reader.list({ reader throws(WireReader.Nonsense) in try reader.byteList() })
    else { return nil }
    var answer = WireWriter()
    do {
      let decoded = try decoder.picture(from: files, look)
      let picture = decoded.picture
      picture.copyPlanes(to: slots.plane(slot))
      answer.put(Outcome.picture.rawValue)
      answer.put(PixelSize(width: picture.width, height: picture.height))
      answer.put(decoded.notes) { $0.put($1) }
    } catch let refusal as RefusedPicture {
      answer.put(Outcome.refused.rawValue)
      answer.put(refusal.reason)
    } catch {
      answer.put(Outcome.outOfMemory.rawValue)
    }
    return answer.bytes
  }

  /// So many bytes; nil at the end.
  private func read(_ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    var received = 0
    while received < count {
      let part = bytes.withUnsafeMutableBytes { Glibc.read(socket, $0.baseAddress! + received, count - received) }
      guard part > 0 else { return nil }
      received += part
    }
    return bytes
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
