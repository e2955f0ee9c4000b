import ArgumentParser
import Encoding
import FrameBatches
import SegmentEncoder

/// The process in which untrusted files are decoded.
enum Sandbox: String, ExpressibleByArgument, CaseIterable {
  case require, auto, off
}

/// The same for every command that decodes.
struct SandboxOptions: ParsableArguments {
  @Option(
    help: .setting(
      "Decode untrusted files in confined processes: if the kernel can (auto), always or fail (require), or never (off).",
      valueName: "mode"))
  var sandbox = Sandbox.auto

  @Option(
    help: .setting(
      "Timeout of a decoder in seconds; then the file is refused.", valueName: "seconds"))
  var maxDecode = 30

  func validate() throws { try require("--max-decode", maxDecode, in: 1...3_600, "seconds") }

  /// Returns decoders of videos; nil if there is no sandbox. Call it before the process has threads.
  func videoDecoders() throws -> DecoderForkServer? {
    var limits = Limits.ofFilms
    limits.decodeSeconds = maxDecode
    if sandbox == .off { try FormatLibrary.load() }
    return try decoders(limits, readsVideos: true)
  }

  /// Returns decoders of a batch's files; nil if there is no sandbox. Call it before the process has threads.
  func decoders(_ limits: Limits, background: Colour = .black, readsVideos: Bool = false) throws -> DecoderForkServer? {
    if sandbox == .off { return nil }
    let host = try DecoderForkServer(limits: limits, background: background, readsVideos: readsVideos)
    if !host.isConfined {
      let what = "this kernel has no system call filters (seccomp)"
      if sandbox == .require { throw SandboxError(description: "\(what), which --sandbox require asks for") }
      say("\(what): untrusted files are decoded in separate processes with limits, but not confined")
    }
    return host
  }
}
