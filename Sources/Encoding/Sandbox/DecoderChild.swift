// The decoder process. It confines itself before it reads the first untrusted byte, and ends when its socket is closed.

import CLinux
import FrameBatches
import Glibc

struct DecoderChild {
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
    let pixels = UInt64(limits.pixels) * 32 + (256 << 20)
    let shared = UInt64(PictureSlots.indices.count * slots.size)
    return clinux_limit_memory(addressSpace + shared + pixels) == 0
      && (cpuSeconds == 0 || clinux_limit_cpu(UInt64(cpuSeconds)) == 0) && clinux_limit_files() == 0
  }

  private func answer(
    _ question: inout WireReader, on channel: DecoderChannel, into slots: PictureSlots, _ video: VideoAnswers,
    _ isConfined: Bool
  ) throws {
    switch try question.read(DecoderRequestKind.self) {
    case .isConfined: channel.answer(to: ConfinementRequest.self, isConfined)
    case .decode:
      let request = try question.read(FrameRequest.self)
      channel.answer(to: FrameRequest.self, picture(request, channel.files(request.sizes), slots.buffer(request.slot)))
    case .unpack:
      let request = try question.read(UnpackingRequest.self)
      channel.answer(to: UnpackingRequest.self, ArchiveUnpacking.unpack(request, on: channel, limits: limits))
    case let kind: try video.answer(kind, &question, into: slots)
    }
  }

  private func picture(
    _ request: FrameRequest, _ files: [[UInt8]], _ buffer: SharedPictureBuffer
  ) -> FrameRequest.Answer {
    do {
      decoder.sampleBits = request.sampleBits
      let decoded = try decoder.picture(from: files, request.look, into: buffer)
      return .picture(decoded.picture.lay(into: buffer), notes: decoded.notes, decoded.facts, decoded.work)
    } catch let refusal as RefusedPicture {
      return .refused(refusal.refusal)
    } catch {
      return .outOfMemory
    }
  }
}
