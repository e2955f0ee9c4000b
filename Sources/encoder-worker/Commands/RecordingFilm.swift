import ArgumentParser
import Encoding
import FileSystem
import Films
import FrameBatches
import Reencoding
import SegmentEncoder
import Sessions

/// The film of a recording: an MP4, a MOV or an image sequence of another program, which is encoded again at its own times.
extension FilmCommand {
  /// The recording that the call is about; nil if its inputs are pictures.
  var recording: String? {
    guard inputs.count == 1 else { return nil }
    let isVideo = VideoFormat.ofFile(at: inputs[0])?.isReadable == true || VideoFormat.isSequence(at: inputs[0])
    return isVideo ? inputs[0] : nil
  }

  /// - Throws: ``BadBatch`` for several recordings, with the command that joins them.
  func requireOneRecording() throws {
    guard inputs.count > 1, let first = VideoFormat.ofFile(at: inputs[0]),
      inputs.allSatisfy({ VideoFormat.ofFile(at: $0) == first })
    else { return }
    throw BadBatch(
      "film", inputs[0], "the first of \(inputs.count) inputs that are \(first.described) each",
      advice: first.advice(joining: inputs))
  }

  func film(of recording: String) throws {
    let options = try options(of: recording)
    let target = try Stitching.file(to)
    guard target != DurableFile.resolved(recording) else {
      throw BadTarget(path: to, cause: "the recording itself", advice: "name another file")
    }
    try form.requireEncoder(for: target)
    try map.check()
    let signals = try TerminationSignals()
    // The next command removes what a killed one has left.
    let staging = try Staging.temporary(for: WorkerID())
    defer { staging.remove() }
    let scratch = Staging.Scratch(in: staging)
    defer { scratch.remove() }
    let output = try Staging(output: scratch.path, worker: WorkerID())
    defer { output.remove() }
    let work = try Reencoding(
      recording, options, staging: { output }, cancellation: Cancellation { signals.wait(ms: 0) })
    _ = try ReencodeCommand.run(work, threads: jobs ?? 1, signals)
    let zeroMs = work.isWithoutClock ? options.assumedStartMs : nil
    let result = try withProgress(in: form.unit, signals) { advance in
      try Stitching.film(
        of: "\(scratch.path)/\(Self.session)", showing: part.clip(idle: idle.rule()), as: form, to: to,
        gaps: gaps ?? .hold, zeroMs: zeroMs, decoders: options.decoders, progress: advance)
    }
    try map.write(result)
    for warning in result.warnings { say("\(warning.file): \(warning.what)") }
    results.print(json: result.json, text: result.text(of: form, at: to))
  }

  private func options(of recording: String) throws -> Reencoding.Options {
    guard fps == nil, capture.nameTime == nil, capture.times == nil else {
      throw ValidationError(
        "\(recording) is a recording with times of its own: leave out --fps, --name-time and --times")
    }
    guard labels.path == nil else {
      throw ValidationError("\(recording) is a recording: --labels is for pictures")
    }
    var options = Reencoding.Options()
    if let start {
      guard case .unixMs(let ms)? = SessionInstant(start) else {
        throw ValidationError("--start '\(start)': \(SessionInstant.fault(of: start))")
      }
      options.startMs = ms
    }
    options.assumedStartMs = Self.unknownStart
    options.quality = encoding.quality
    if form == .mp4 { options.maxSide = size.maxSide }
    options.session = SessionID(Self.session)
    options.limits.decodeSeconds = encoding.sandbox.maxDecode
    // Processes are forked before this one has threads.
    options.decoders = try encoding.sandbox.videoDecoders()
    return options
  }
}
