import Foundation
import TestSupport
import Testing

@testable import Remote

/// Redis, an object store and a receiver of events for one test.
struct RemoteServers {
  let queue: QueueServer
  let store: StoreServer
  let scratch: ScratchDirectory
  let client: S3Client
  let receiver: ReceiverServer
  /// A prefix for this test only.
  let location = "s3://\(StoreServer.bucket)/\(UUID().uuidString)"

  init() throws {
    (queue, store, scratch) = (try QueueServer(), try StoreServer.shared.get(), try ScratchDirectory())
    receiver = try ReceiverServer()
    let environment = store.environment
    client = try S3Client(S3Location(location), S3Settings { environment[$0] })
  }
}

/// A suite whose workers read batch names from a queue and objects from a store, as in production.
protocol RemoteSuite {
  var servers: RemoteServers { get }
}

extension RemoteSuite {
  var queue: QueueServer { servers.queue }
  var scratch: ScratchDirectory { servers.scratch }
  var client: S3Client { servers.client }
  var receiver: ReceiverServer { servers.receiver }
  var location: String { servers.location }

  var environment: [String: String] { servers.store.environment.merging(["TMPDIR": scratch.path("")]) { $1 } }

  var remote: [String] { ["--queue", queue.url, "--store", location] }

  func run(_ words: [String], _ others: [String: String] = [:]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words + remote, environment: environment.merging(others) { $1 })
  }

  func start(_ words: String...) throws -> RunningWorker {
    try RunningWorker(["run"] + remote + words, environment: environment)
  }

  /// Encodes the batches of a session into the directory `output`, and by a worker into the store.
  ///
  /// - Parameter options: of the worker.
  func encode(_ session: GeneratedSession, _ options: [String] = []) throws {
    var archives: [String] = []
    for batch in session.batches.sorted() {
      let path = batch + ".tar"
      try Tool.output("tar", ["-C", batch, "-cf", path, "."])
      _ = try servers.client.put(
        "incoming/" + URL(fileURLWithPath: path).lastPathComponent, .file(path), .archive, when: .absent)
      archives.append(path)
    }
    let encoded = try Tool.run(
      EncoderWorker.path, ["encode"] + archives + ["--output", servers.scratch.path("output")])
    try #require(encoded.status == 0, "\(encoded.errors)")
    for words in [["reconcile"], ["run", "--drain"] + options] {
      let result = try run(words)
      try #require(result.status == 0, "\(result.errors)")
    }
  }

  /// Runs a command on the store.
  func onStore(_ words: [String]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words + ["--store", location], environment: environment)
  }

  /// Expects that calls write the same for a stored session as for its directory.
  ///
  /// - Parameter calls: of each the command, the name of its result, and options.
  func expectSame(_ calls: [[String]], of id: String, as directory: String) throws {
    for words in calls {
      let (target, other) = (scratch.path("from-directory-" + words[1]), scratch.path("from-store-" + words[1]))
      let options = Array(words.dropFirst(2))
      let wanted = try Tool.run(EncoderWorker.path, [words[0], directory, "--to", target] + options)
      let stored = try onStore([words[0], id, "--to", other] + options)
      #expect(wanted.status == 0 && stored.status == 0, "\(wanted.errors) \(stored.errors)")
      #expect(try contents(other) == contents(target) && !contents(target).isEmpty, "\(words)")
    }
  }

  /// Returns the bytes of a file, or of all files of a directory, by their paths in it.
  func contents(_ path: String) throws -> [String: Data] {
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else { return [:] }
    guard isDirectory.boolValue else { return ["": FileManager.default.contents(atPath: path) ?? Data()] }
    return try FileManager.default.subpathsOfDirectory(atPath: path).reduce(into: [:]) { files, name in
      if !name.hasSuffix(".lock") { files[name] = FileManager.default.contents(atPath: path + "/" + name) }
    }
  }

  /// Returns all keys under a prefix, without the prefix.
  func keys(_ prefix: String) throws -> [String] {
    var all: [String] = []
    while case let page = try client.list(prefix, after: all.last), !page.isEmpty { all += page.map(\.key) }
    return all.map { String($0.dropFirst(prefix.count)) }
  }

  /// Returns the events in the stream.
  func streamed() throws -> [BatchEventJSON] {
    // Five lines an entry: its ID, and two fields with their values.
    let lines = try queue.command("XRANGE", "{encoder-worker}:published", "-", "+")
    return try stride(from: 0, to: lines.count - 4, by: 5).map {
      #expect(lines[$0 + 1] == "key" && lines[$0 + 3] == "event")
      let event = try JSONDecoder().decode(BatchEventJSON.self, from: Data(lines[$0 + 4].utf8))
      #expect(event.key == lines[$0 + 2])
      return event
    }
  }
}
