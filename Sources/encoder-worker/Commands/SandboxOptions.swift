import ArgumentParser
import Encoding
import FrameBatches
import SegmentEncoder

/// Where strangers' files are decoded.
enum Sandbox: String, ExpressibleByArgument, CaseIterable {
  case require, auto, off
}

/// The same for every command that decodes.
struct SandboxOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Archives, images and videos are decoded in processes without files or network: where the kernel can confine them (auto), there only (require), or not at all (off).",
      valueName: "mode"))
  var sandbox = Sandbox.auto

  @Option(
    help: ArgumentHelp(
      "A picture, an archive or a video whose decoder is silent for longer is refused.", valueName: "seconds"))
  var maxDecode = 30

  func validate() throws {
    guard (1...3_600).contains(maxDecode) else { throw ValidationError("--max-decode is between 1 and 3600 seconds") }
  }

  /// For videos. To be asked for before the process has threads.
  func videoDecoders() throws -> DecoderHost? {
    var limits = Limits()
    limits.decodeSeconds = maxDecode
    if sandbox == .off { try FormatLibrary.load() }
    return try decoders(limits, readsVideos: true)
  }

  /// To be asked for before the process has threads.
  func decoders(_ limits: Limits, background: Colour = .black, readsVideos: Bool = false) throws -> DecoderHost? {
    if sandbox == .off { return nil }
    let host = try DecoderHost(limits: limits, background: background, readsVideos: readsVideos)
    if !host.isConfined {
      let what = "this kernel has no system call filters (seccomp)"
      if sandbox == .require { throw SandboxError(description: "\(what), which --sandbox require asks for") }
      say("\(what): strangers' files are decoded in processes of their own, with limits, but not confined")
    }
    return host
  }
}
