// The decoder process. It confines itself before it reads the first untrusted byte, and ends when its socket is closed.

import CLinux
import FrameBatches
import Glibc

struct DecoderChild {
  enum Request: Int, WireValue {
    /// Tell whether the kernel filters the system calls of this process. On a kernel without filters only the limits remain.
    case isConfined
    /// Decode a frame's files, which follow the question.
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
  /// The size of the fork server's address space in bytes, which this process has inherited. Pictures come on top of it.
  let addressSpace: UInt64
  /// Whether to end unless the kernel filters the system calls of this process.
  let mustBeConfined: Bool
  /// Maximum seconds of CPU; 0 for no limit.
  let cpuSeconds: Int

  func run() -> Never {
    clinux_die_with_parent()
    guard let slots = try? PictureSlots(memory, limits: limits), applyLimits(slots) else { _exit(1) }
    let isConfined = clinux_only_compute() == 0 && clinux_is_filtered() != 0
    guard isConfined || !mustBeConfined else { _exit(1) }
    let channel = DecoderChannel(socket: socket)
    let video = VideoAnswers(channel, limits: limits)
    while var question = channel.question() {
      do { try answer(&question, on: channel, into: slots, video, isConfined) } catch { _exit(1) }
    }
    _exit(0)
  }

  private func applyLimits(_ slots: PictureSlots) -> Bool {
    // Beside the memory in use: a picture needs at most four times 16 bits a pixel, and a few copies in 8 bits.
    let pixels = UInt64(limits.pixels) * 32 + 256 << 20
    let shared = UInt64(PictureSlots.indices.count * slots.size)
    return clinux_limit_memory(addressSpace + shared + pixels) == 0
      && (cpuSeconds == 0 || clinux_limit_cpu(UInt64(cpuSeconds)) == 0) && clinux_limit_files() == 0
  }

  private func answer(
    _ question: inout WireReader, on channel: DecoderChannel, into slots: PictureSlots, _ video: VideoAnswers,
    _ isConfined: Bool
  ) throws {
    switch try question.read(Request.self) {
    case .isConfined: channel.answer(isConfined)
    case .decode:
      let (slot, look) = try (question.slot(), question.read(FrameComposition.self))
      let (files, buffer) = (channel.files(try question.read()), slots.buffer(slot))
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
