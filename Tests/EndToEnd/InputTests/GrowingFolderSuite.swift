import TestSupport

/// Tests of a folder `yard` that `encode` reads again and again.
protocol GrowingFolderSuite {
  var scratch: ScratchDirectory { get }
  var folder: NumberedFolder { get }
}

/// The line of a batch in the JSON of `encode`.
struct EncodedLine: Decodable {
  struct Refused: Decodable { let source: String, reason: String }
  let frames: Int
  let duplicate: Bool
  let refused: [Refused]
  let warnings: [String]
}

extension GrowingFolderSuite {
  /// - Parameter limit: the most frames of a batch.
  func encode(_ options: [String] = [], to output: String = "out", limit: Int = 6) throws -> Tool.Result {
    try Tool.run(
      EncoderWorker.path,
      ["encode", folder.path, "--output", scratch.path(output), "--json", "--limit", "frames=\(limit)"] + options)
  }

  func session(_ output: String = "out") throws -> PublishedSession {
    try PublishedSession(scratch.path(output + "/yard"))
  }

  /// The captures of the session, in milliseconds from the folder's start.
  func captured(_ output: String = "out") throws -> [Int64] {
    try session(output).captured.map { $0.timeMs - NumberedFolder.startMs }
  }
}
