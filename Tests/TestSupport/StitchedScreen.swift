import Foundation

/// The screen of a session at each instant, from its stitched film as stock tools read it: the samples' times, the timing track,
/// and the decoded samples of each segment.
public struct StitchedScreen {
  public enum Content: Equatable {
    /// The capture, the number of the segment, and the number of the sample in it.
    case picture(captureMs: Int64, segment: Int, sample: Int)
    case gap(startMs: Int64, endMs: Int64)
    case outside
  }

  public let session: PublishedSession
  private let video: [Probe.Packet]
  private let timing: [Probe.Packet]
  private let texts: [TimingEntry]
  private let pictures: [[Pixels]]
  /// The start of each sample of each segment, in ticks.
  private let starts: [[Int64]]

  public init(_ session: PublishedSession, in scratch: ScratchDirectory) throws {
    let film = scratch.path("\(session.index.session)-screen.mp4")
    try Tool.output(EncoderWorker.path, ["stitch", session.path, "--to", film, "--key-every", "0"])
    let probe = try Probe(film)
    self.session = session
    video = probe.packets(of: 0)
    timing = probe.packets(of: 1)
    texts = try Probe.timingTexts(film)
    pictures = try session.pictures()
    starts = try session.manifests.map { try Probe(session.video($0)).packets(of: 0).map(\.pts) }
  }

  /// - Parameter ms: unix milliseconds.
  public func content(at ms: Int64) -> Content {
    let startMs = session.index.startMs
    let ticks = (ms - startMs) * 90
    guard let place = timing.lastIndex(where: { $0.pts <= ticks }), ticks < timing[place].pts + timing[place].duration
    else { return .outside }
    guard timing[place].size != "2" else {
      return .gap(
        startMs: startMs + timing[place].pts / 90, endMs: startMs + (timing[place].pts + timing[place].duration) / 90)
    }
    let text = texts[timing[...place].count { $0.size != "2" } - 1]
    let shown = video.lastIndex { $0.pts <= ticks } ?? 0
    let key = video[...shown].lastIndex(where: \.isKey) ?? 0
    let segment = video[...shown].count(where: \.isKey) - 1
    // A film has repeats of its own.
    let sample = starts[segment].lastIndex { $0 <= video[shown].pts - video[key].pts } ?? 0
    return .picture(captureMs: text.t, segment: segment, sample: sample)
  }

  /// Returns a decoded sample of a segment in its captured size.
  public func picture(_ segment: Int, _ sample: Int) -> Pixels {
    let own = pictures[segment]
    let (manifest, coded) = (session.manifests[segment], own[sample])
    let rows = (0..<manifest.height).map { coded.bytes[3 * coded.width * $0..<3 * (coded.width * $0 + manifest.width)] }
    return Pixels(width: manifest.width, height: manifest.height, bytes: Array(rows.joined()))
  }

  /// Instants that are worth a look: each change of the screen, one millisecond before and after, and the middle of each gap.
  public var instants: [Int64] {
    let startMs = session.index.startMs
    let changes = timing.map { startMs + $0.pts / 90 } + [session.index.endMs]
    let gaps = session.index.gaps.map { ($0.startMs + $0.endMs) / 2 }
    return Set(changes.flatMap { [$0 - 1, $0, $0 + 1] } + gaps).sorted()
  }
}
