// The decoder process. It confines itself before it reads the first untrusted byte, and ends with its socket.

import CLinux
import FrameBatches
import Glibc

package struct DecoderChild {
  package enum Request: Int, WireValue {
    case probe
    /// A frame's files become a picture.
    case decode
    /// An archive's files.
    case unpack
    /// Questions about videos, for ``VideoAnswers``.
    case track, openFilm, filmPicture, pictures, problems, samples
  }

  /// How a decoded frame came out, first in the answer.
  package enum Outcome: Int, WireValue { case picture, refused, outOfMemory }

  package let socket: Int32
  package let memory: Int32
  package let limits: Limits
  package let decoder: PictureDecoder
  /// Seconds of CPU; 0 for any number.
  let cpuSeconds: Int

  package func run() -> Never {
    clinux_die_with_parent()
    guard let slots = try? PictureSlots(memory, limits: limits), applySandbox() else { _exit(1) }
    let channel = DecoderChannel(socket: socket)
    let video = VideoAnswers(channel, limits: limits)
    while var question = channel.question() {
      do {
        try answer(&question, on: channel, into: slots, video)
      } catch {
        // The question makes no sense.
        _exit(1)
      }
    }
    _exit(0)
  }

  private func applySandbox() -> Bool {
    // A picture needs at most itself in four times 16 bits, and a few copies in 8 bits; beside what is there already.
    let pixels = UInt64(limits.pixels) * 32 + 256 << 20
    guard let size = Self.virtualSize, clinux_limit_memory(size + pixels) == 0,
      cpuSeconds == 0 || clinux_limit_cpu(UInt64(cpuSeconds)) == 0, clinux_limit_files() == 0
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

  private func answer(
    _ question: inout WireReader, on channel: DecoderChannel, into slots: PictureSlots, _ video: VideoAnswers
  ) throws {
    switch try question.read(Request.self) {
    case .probe:
      // Where this is allowed, nothing confines us.
      _ = open("/", O_RDONLY)
      channel.answer()
    case .decode:
      let (slot, look) = (try question.slot(), try question.read(FrameComposition.self))
      decode(try question.read([WireBytes].self).map(\.bytes), look, into: slots.space(of: slot), channel)
    case .unpack: ArchiveUnpacking.answer(on: channel, size: try question.read(), limits: limits)
    case let request: try video.answer(request, &question, into: slots)
    }
  }

  private func decode(
    _ files: [[UInt8]], _ look: FrameComposition, into space: SharedPictureBuffer, _ channel: DecoderChannel
  ) {
    do {
      let decoded = try decoder.picture(from: files, look, into: space)
      channel.answer(Outcome.picture, decoded.picture.lay(into: space), decoded.notes, decoded.work)
    } catch let refusal as RefusedPicture {
      channel.answer(Outcome.refused, refusal.reason)
    } catch {
      channel.answer(Outcome.outOfMemory)
    }
  }
}
