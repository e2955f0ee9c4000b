import Foundation
import TestSupport
import Testing

/// Image files that were changed at random reach the program itself, in its sandbox: each is refused or shown, and none ends or
/// delays a decoder.
@Suite struct ChangedImageTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private static func changed(_ file: [UInt8], _ random: inout Random) -> [UInt8] {
    var file = file
    for _ in 0..<random.int(1...4) {
      let place = Int(random.int(0...Int64(file.count - 1)))
      file[place] =
        Bool.random(using: &random) ? file[place] ^ 1 << UInt8(random.int(0...7)) : UInt8(random.int(0...255))
    }
    return random.int(0...9) == 0 ? Array(file.prefix(Int(random.int(1...Int64(file.count))))) : file
  }

  private func images() throws -> [[UInt8]] {
    let made = try scratch.directory("made")
    try Pillow.run("make_pictures.py", [made])
    let old = try names(in: made).filter { name in ["bmp", "gif", "tiff"].contains { name.hasPrefix($0) } }
    let modern = Fixture("modern").path
    return try (old.map { "\(made)/\($0)" } + names(in: modern).map { "\(modern)/\($0)" }).map {
      Array(try Data(contentsOf: URL(fileURLWithPath: $0)))
    }
  }

  @Test func changedImagesAreRefusedOrShown() throws {
    var random = Random(seed: 19)
    _ = try scratch.directory("batch")
    var count = 0
    func add(_ file: [UInt8]) throws {
      try scratch.file("batch/\(1_767_859_512_000 + 1_000 * count).img", file)
      count += 1
    }
    try add(Fixture("single-frame").bytes("1767859512340.jpg"))
    for image in try images() {
      for _ in 0..<15 { try add(Self.changed(image, &random)) }
    }
    let result = try EncoderWorker.run(
      "encode", scratch.path("batch"), "--output", scratch.path("output"), "--accept")
    try #require(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("output/batch"))
    let refused = session.manifests.flatMap(\.refused)
    #expect(session.captured.count + refused.count == count && session.captured.count > 1)
    // A file without any part of its format's start is no image any more.
    for refused in refused {
      #expect(!refused.reason.contains("crashed") && !refused.reason.contains("takes more"), "\(refused)")
    }
  }
}
