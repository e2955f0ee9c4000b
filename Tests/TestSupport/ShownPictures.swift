import Foundation

/// Compares the picture that Pillow decodes with the one that the program under test encodes.
public struct ShownPicture {
  public enum Outcome {
    case encoded(Pixels)
    /// The reason in the manifest.
    case refused(String)
  }

  public let file: String
  /// Pillow's name for the format, such as `JPEG`, and the decoded picture. Nil if Pillow cannot decode the file.
  public let reference: (kind: String, pixels: Pixels)?
  public let outcome: Outcome

  public var name: String { URL(fileURLWithPath: file).lastPathComponent }

  /// The mean CIEDE2000 difference of the mean colours of 2×2 pixels, which share their chroma in the film. Nil without
  /// two pictures to compare. Infinite if the sizes differ.
  ///
  /// The film's colours may lie outside RGB, for example at single yellow pixels beside black ones. Clipping then
  /// changes their mean. The comparison therefore also accepts Pillow's picture with shared chroma. That picture alone
  /// is not sufficient: a JPEG's own colours may lie outside RGB, and Pillow has already clipped them.
  public var difference: Double? {
    guard let reference, case .encoded(let picture) = outcome else { return nil }
    guard (picture.width, picture.height) == (reference.pixels.width, reference.pixels.height) else { return .infinity }
    let own = picture.halved
    let plain = ColourDifference(own, reference.pixels.halved).mean
    guard plain > 1 else { return plain }
    return min(plain, ColourDifference(own, reference.pixels.withSharedChroma.halved).mean)
  }

  /// The mean CIEDE2000 difference in areas of one colour, where coding leaves little: it shows a wrong range or wrong primaries. Nil
  /// without two pictures of one size, or without such areas.
  public var differenceInFlatAreas: Double? {
    guard let reference, case .encoded(let picture) = outcome,
      (picture.width, picture.height) == (reference.pixels.width, reference.pixels.height)
    else { return nil }
    let (shown, wanted) = (picture.halved, reference.pixels.halved)
    // Coding mixes these pixels with those that are 2 away.
    let reach = 2
    var (sum, count) = (0.0, 0)
    for y in reach..<max(reach, wanted.height - reach) {
      for x in reach..<max(reach, wanted.width - reach) {
        let colour = wanted[x, y]
        let isFlat = (y - reach...y + reach).allSatisfy { row in
          (x - reach...x + reach).allSatisfy { wanted[$0, row] == colour }
        }
        if isFlat { (sum, count) = (sum + ciede2000(Lab(shown[x, y]), Lab(colour)), count + 1) }
      }
    }
    return count > 0 ? sum / Double(count) : nil
  }

  private init(_ file: String, _ reference: (kind: String, pixels: Pixels)?, _ outcome: Outcome) {
    self.file = file
    self.reference = reference
    self.outcome = outcome
  }

  /// Encodes files as one batch. Throws if the worker crashes or hangs.
  ///
  /// - Parameter truths: files with the same pictures, for formats that Pillow does not know.
  public static func all(_ files: [String], truths: [String]? = nil) throws -> [ShownPicture] {
    let scratch = try ScratchDirectory()
    let references = try references(truths ?? files, scratch)
    let outcomes = try outcomes(files, scratch)
    return zip(files, zip(references, outcomes)).map { ShownPicture($0, $1.0, $1.1) }
  }

  private struct Answer: Decodable {
    let kind: String?, width: Int?, height: Int?
  }

  private static func references(
    _ files: [String], _ scratch: ScratchDirectory
  ) throws -> [(kind: String, pixels: Pixels)?] {
    let directory = try scratch.directory("shown")
    let result = try Pillow.run("show_pictures.py", [directory], input: files.joined(separator: "\n"))
    let lines = result.split(separator: "\n")
    guard lines.count == files.count else { throw Tool.Failure("Pillow looked at \(lines.count) of \(files.count)") }
    return try lines.enumerated().map { number, line in
      let answer = try JSONDecoder().decode(Answer.self, from: Data(line.utf8))
      guard let kind = answer.kind, let width = answer.width, let height = answer.height else { return nil }
      let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(number).rgb")))
      return (kind, Pixels(width: width, height: height, bytes: bytes))
    }
  }

  private static let startMs = 1_767_859_512_340
  /// Longer than the maximum hold, so each frame has its own segment.
  private static let distanceMs = 10_000

  private static func outcomes(_ files: [String], _ scratch: ScratchDirectory) throws -> [Outcome] {
    let batch = try scratch.directory("batch")
    // A valid frame, so that the worker publishes a session. All names end in PNG, whatever the format is.
    let paths = [Fixture("single-frame").path + "/" + (try names(in: Fixture("single-frame").path)[0])] + files
    for (number, path) in paths.enumerated() {
      try FileManager.default.copyItem(atPath: path, toPath: batch + "/" + source(number))
    }
    let result = try Tool.run(
      "timeout",
      [
        "--signal=KILL", "120", EncoderWorker.path, "encode", batch, "--output", scratch.path("output"), "--quality",
        "sharp", "--max-hold", "1000",
      ])
    guard result.status == 0 else {
      throw Tool.Failure("exit status \(result.status) with \(paths[1])…\(paths[paths.count - 1])")
    }
    let session = try PublishedSession(scratch.path("output/batch"))
    var outcomes: [String: Outcome] = [:]
    for manifest in session.manifests {
      for refused in manifest.refused { outcomes[refused.source] = .refused(refused.reason) }
      guard manifest.frames.count == 1 else {
        throw Tool.Failure("\(manifest.file) has \(manifest.frames.count) frames")
      }
      let shown = manifest.frames[0].source
      guard shown != source(0) else { continue }
      outcomes[shown] = .encoded(try picture(session.video(manifest), manifest))
    }
    return try paths.indices.dropFirst().map { number in
      guard let outcome = outcomes[source(number)] else { throw Tool.Failure("nothing became of \(paths[number])") }
      return outcome
    }
  }

  private static func source(_ number: Int) -> String { "\(startMs + number * distanceMs).png" }

  /// Returns the film's picture as stock ffmpeg decodes it, without the row or column that pads odd sides.
  private static func picture(_ video: String, _ manifest: PublishedSession.Manifest) throws -> Pixels {
    let coded = try Pixels.decode(
      video, width: manifest.codedWidth, height: manifest.codedHeight, chroma: "neighbor",
      options: ["-frames:v", "1"])[0]
    guard (coded.width, coded.height) != (manifest.width, manifest.height) else { return coded }
    let bytes = (0..<manifest.height).flatMap { row in
      coded.bytes[row * coded.width * 3..<(row * coded.width + manifest.width) * 3]
    }
    return Pixels(width: manifest.width, height: manifest.height, bytes: bytes)
  }
}

/// The reference decoder.
public enum Pillow {
  /// Runs a script in `Tests/reference` and returns its output.
  @discardableResult
  public static func run(_ script: String, _ arguments: [String], input: String = "") throws -> String {
    let path = Fixture.root.appendingPathComponent("Tests/reference/\(script)").path
    let result = try Tool.run(Tool.python, [path] + arguments, input: Data(input.utf8))
    guard result.status == 0 else { throw Tool.Failure("\(script): \(result.errors)") }
    return result.text
  }
}
