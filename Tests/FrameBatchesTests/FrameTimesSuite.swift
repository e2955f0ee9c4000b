import Foundation
import TestSupport

@testable import FileSystem
@testable import FrameBatches

/// A suite that reads the times of batches.
protocol FrameTimesSuite {
  var scratch: ScratchDirectory { get }
}

extension FrameTimesSuite {
  private static var jpeg: [UInt8] { get throws { try Fixture("single-frame").bytes("1767859512340.jpg") } }

  func batch(_ names: [String], json: String? = nil) throws -> String {
    let path = try scratch.directory("batch-\(UUID().uuidString)")
    for name in names {
      try FileManager.default.createDirectory(
        atPath: (path + "/" + name as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
      try scratch.file(lastComponent(of: path) + "/" + name, Self.jpeg)
    }
    if let json { try scratch.file(lastComponent(of: path) + "/batch.json", Array(json.utf8)) }
    return path
  }

  func options(
    _ nameTime: String? = nil, times: String? = nil, start: String? = nil, fps: String? = nil, intervalMs: Int64? = nil,
    timeZone: String? = nil
  ) throws -> InputOptions {
    var options = InputOptions(session: "s")
    options.intervalMs = intervalMs
    try options.setTimes(nameTime: nameTime, times: times, start: start, fps: fps, timeZone: timeZone)
    return options
  }

  /// Returns the sessions of a batch, each with the instants of its frames.
  func read(_ path: String, _ options: InputOptions) throws -> [String: [Int64]] {
    let batch = try BatchSessions(reading: path, options: options)
    return Dictionary(
      uniqueKeysWithValues: batch.readers.map { ($0.batch.session.description, $0.batch.frames.map(\.timeMs)) })
  }
}
