import Foundation
import TestSupport
import Testing

/// A line about a picture, as `pictures` writes it.
struct PictureLine: Decodable, Equatable {
  struct Region: Decodable, Equatable { let x, y, width, height: Int }
  struct Event: Decodable, Equatable {
    let unixMs: Int
    let type: String
    let pointer, x, y: Int
  }

  let file, session, instant, source: String
  let unixMs, shownFromMs, holdMs: Int64
  let width, height, blocks, tokens: Int
  let changedBlocks: Int?
  let changedShare: Double?
  let regions: [Region]?
  let masks: [PublishedSession.Manifest.Mask]?
  let events: [Event]
  let notes: [String]
  let image: String?
}

/// Tests of what `pictures` writes.
protocol PicturesSuite {
  var scratch: ScratchDirectory { get }
}

/// The output of `pictures --json`.
private struct Summary: Decodable {
  let file, session: String
  let pictures, captures, tokens, bytes: Int
}

extension PicturesSuite {
  func pictures(_ path: String, to target: String = "pictures", _ options: [String] = []) throws -> [PictureLine] {
    let run = try Tool.run(
      EncoderWorker.path, ["pictures", path, "--to", scratch.path(target), "--json"] + options)
    try #require(run.status == 0, "\(run.errors)")
    let list = target.hasSuffix(".jsonl") ? scratch.path(target) : scratch.path(target + "/pictures.jsonl")
    let lines = try lines(Data(contentsOf: URL(fileURLWithPath: list)))
    let summary = try run.json(as: Summary.self)
    #expect(summary.pictures == lines.count && summary.tokens == lines.reduce(0) { $0 + $1.tokens })
    #expect(summary.file.hasSuffix("/" + target))
    return lines
  }

  func lines(_ text: Data) throws -> [PictureLine] {
    try text.split(separator: UInt8(ascii: "\n")).map { try JSONDecoder().decode(PictureLine.self, from: Data($0)) }
  }
}
