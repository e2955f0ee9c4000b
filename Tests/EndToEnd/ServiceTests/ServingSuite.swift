import TestSupport

/// A suite that encodes fixtures and serves them.
protocol ServingSuite {
  var scratch: ScratchDirectory { get }
}

extension ServingSuite {
  func serve(_ fixtures: String...) throws -> (server: RunningServer, sessions: [PublishedSession]) {
    let sessions = try fixtures.map { try EncoderWorker.encode(Fixture($0), into: scratch) }
    _ = try scratch.directory("output")
    return (try RunningServer(["serve", scratch.path("output")]), sessions)
  }
}
