// The decoder process. It confines itself before it reads the first untrusted byte, and ends when its socket is closed.

import CLinux
import FrameBatches
import Glibc

struct DecoderChild {
  enum Request: Int, WireValue {
    case probe
    /// Decode a frame's files.
    case decode
    /// Unpack an archive.
    case unpack
    /// Questions about videos, for ``VideoAnswers``.
    case track, openFilm, filmPicture, pictures, problems, samples, codedPicture
  }

  /// The result of decoding a frame, first in the answer.
  enum Outcome: Int, WireValue { case picture, refused, outOfMemory }

  let socket: Int32
  let memory: Int32
  let limits: Limits
  let decoder: PictureDecoder
  /// Maximum seconds of CPU; 0 for no limit.
  let cpuSeconds: Int

  func run() -> Never {
    clinux_die_with_parent()
    guard let slots = try? PictureSlots(memory, limits: limits), applySandbox() else { _exit(1) }
    let channel = DecoderChannel(socket: socket)
    let video = VideoAnswers(channel, limits: limits)
    while var question = channel.question() {
      do { try answer(&question, on: channel, into: slots, video) } catch { _exit(1) }
    }
    _exit(0)
  }

  private func applySandbox() -> Bool {
    // Beside the memory in use: a picture needs at most four times 16 bits a pixel, and a few copies in 8 bits.
    let pixels = UInt64(limits.pixels) * 32 + 256 << 20
    guard let size = Self.virtualSize, clinux_limit_memory(size + pixels) == 0,
      cpuSeconds == 0 || clinux_limit_cpu(UInt64(cpuSeconds)) == 0, clinux_limit_files() == 0
    else { return false }
    // On a kernel without filters only the limits remain; the probe of the fork server detects that.
    _ = clinux_only_compute()
    return true
  }

  /// The address space of this process in bytes; nil where the kernel does not tell.
  private static var virtualSize: UInt64? {
    // The first number is pages (proc_pid_statm(5)); the size of the file is 0.
    let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 64)
    guard Glibc.read(file, &text, text.count) > 0 else { return nil }
    let pages = UInt64(String(decoding: text.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self))
    return pages.map { $0 * UInt64(sysconf(Int32(_SC_PAGESIZE))) }
  }

  private func answer(
    _ question: inout WireReader, on channel: DecoderChannel, into slots: PictureSlots, _ video: VideoAnswers
  ) throws {
    switch try question.read(Request.self) {
    case .probe:
      // The sandbox forbids this call: if the process survives it, there is no sandbox.
      _ = open("/", O_RDONLY)
      channel.answer()
    case .decode:
      let (slot, look) = try (question.slot(), question.read(FrameComposition.self))
      let (files, buffer) = (try question.read([WireBytes].self).map(\.bytes), slots.buffer(slot))
      do {
        let decoded = try decoder.picture(from: files, look, into: buffer)
        channel.answer(Outcome.picture, decoded.picture.lay(into: buffer), decoded.notes, decoded.work)
      } catch let refusal as RefusedPicture {
        channel.answer(Outcome.refused, refusal.reason)
      } catch {
        channel.answer(Outcome.outOfMemory)
      }
    case .unpack: ArchiveUnpacking.answer(on: channel, size: try question.read(), limits: limits)
    case let request: try video.answer(request, &question, into: slots)
    }
  }
}
