import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches

/// The counter in the names of numbered pictures: all names decide which of their numbers counts.
@Suite struct NameCounterTests: FrameTimesSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Returns the names in the order of their places, and the places.
  private func order(_ names: [String]) throws -> (names: [String], places: [Int64]) {
    let places = try NameCounter(of: names.shuffled()).places.sorted { ($0.value, $0.key) < ($1.value, $1.key) }
    return (places.map(\.key), places.map(\.value))
  }

  /// Names in their order, and their places; the numbers beside the counter tell nothing.
  @Test(
    arguments: [
      (
        ["00000001-Java (11_32_3_701).png", "00000002-Java (11_32_5_143).png", "00000003-Java (11_32_7_92).png"],
        [0, 1, 2]
      ),
      (["frame_0001@2x.png", "frame_0002@2x.png", "frame_0003@2x.png"], [0, 1, 2]),
      (["img_c000_p000_time000_z000.tif", "img_c000_p000_time001_z000.tif"], [0, 1]),
      (["shot001_1920x1080.png", "shot002_1920x1080.png", "shot004_1920x1080.png"], [0, 1, 3]),
      (["1_embedded.jpg", "2_embedded.jpg", "10_embedded.jpg"], [0, 1, 9]),
      (["plt00000.png", "plt00500.png", "plt01000.png", "plt02000.png"], [0, 1, 2, 4]),
      (["t0.0.png", "t0.5.png", "t1.0.png", "t1.5.png"], [0, 1, 2, 3]),
      (["t9.75.png", "t10.0.png", "t10.25.png"], [0, 1, 2]),
      // The number behind the group goes on in the next folder of a camera.
      (["G0011997.JPG", "G0011998.JPG", "G0011999.JPG", "G0022000.JPG", "G0022001.JPG"], [0, 1, 2, 3, 4]),
      // Numbers far apart are no numbers of frames.
      (["step_12.png", "step_510.png", "step_977.png", "step_1533.png"], [0, 1, 2, 3]),
      (["01_login.png", "02_cart v2.png", "03_done.png"], [0, 1, 2]),
      (["IMG_9998.JPG", "IMG_9999.JPG", "IMG_0001.JPG"], [0, 1, 2]),
      // A picture and its raw file have one place.
      (["DSC_1.JPG", "DSC_1.NEF", "DSC_2.JPG", "DSC_2.NEF"], [0, 0, 1, 1]),
      (["a7.png"], [0]),
    ] as [([String], [Int64])])
  func counterIsTheNumberThatDiffersInAllNamesAndIsDense(names: [String], places: [Int64]) throws {
    let order = try order(names)
    #expect(order.names == names && order.places == places)
  }

  @Test func longHoldOfAMissingNumberIsSaid() throws {
    let names = (0..<30).map { "frame_\($0 < 10 ? "0" : "")\($0).png" } + ["frame_90.png", "frame_91.png"]
    let counter = try NameCounter(of: names)
    #expect(counter.places["frame_91.png"] == 91)
    #expect(
      counter.warnings == ["frame_29.png is held for 61 frames: no picture has a number between it and frame_90.png"])
  }

  @Test func stepThatIsNotOneIsSaid() throws {
    let counter = try NameCounter(of: ["epoch_10.png", "epoch_20.png", "epoch_30.png"])
    #expect(counter.warnings == ["the numbers of the pictures go up by 10: each step is one frame"])
    let sparse = try NameCounter(of: ["step_12.png", "step_510.png", "step_977.png", "step_1533.png"])
    #expect(sparse.warnings.map { $0.contains("--name-time 'step_%q' counts each number") } == [true])
  }

  @Test func strayNameIsRefusedByName() throws {
    let counter = try NameCounter(of: (1...9).map { "frame_\($0).png" } + ["cover 2026.png", "notes.png"])
    #expect(counter.places.count == 9)
    #expect(Set(counter.refused.map(\.source)) == ["cover 2026.png", "notes.png"])
  }

  @Test func namesWithoutACounterAreRefusedWithThePatternsThatReadThem() throws {
    // The second day begins at its first picture again.
    let days = #expect(throws: CounterFault.self) {
      try NameCounter(of: ["2021-03-05_1200.png", "2021-03-05_1201.png", "2021-03-06_1200.png", "2021-03-06_1201.png"])
    }
    #expect(days?.cause == "no number differs in all names, as in '2021-03-05_1200.png'")
    let random = #expect(throws: CounterFault.self) {
      try NameCounter(of: ["21636369-8b52.png", "7b16a9-f1.png", "9e1-77d2.png", "0c44-8a.png"])
    }
    #expect(random?.patterns == [])
    // Two numbers count, and put the pictures in different orders.
    let two = #expect(throws: CounterFault.self) { try NameCounter(of: ["a1_of_3.png", "a2_of_2.png", "a3_of_1.png"]) }
    #expect(two?.patterns == ["a%q_of_%*", "a%*_of_%q"])
  }

  @Test func picturesOfTwoSourcesAreRefusedWithTheFilesOfEach() throws {
    for (first, second) in [("webcam_", "screen_"), ("cam1_", "cam2_")] {
      let names = (1...6).flatMap { ["\(first)\($0).png", "\(second)\($0).png"] }
      let fault = #expect(throws: CounterFault.self) { try NameCounter(of: names) }
      #expect(Set(fault?.series.map(\.glob) ?? []) == ["\(first)*.png", "\(second)*.png"])
    }
  }

  // MARK: - Batches

  private func fps(_ path: String, _ pattern: String? = nil) throws -> [Batch] {
    try BatchSessions(reading: path, options: options(pattern, start: "1767859512000", fps: "1")).readers.map(\.batch)
  }

  @Test func patternOfANumberChoosesTheCounter() throws {
    let path = try batch(["a1_of_30.png", "a2_of_20.png", "a3_of_10.png"])
    for pattern in ["a%*_of_%q", "a%*_of_%q.png"] {
      let frames = try fps(path, pattern)[0].frames
      #expect(frames.map(\.source) == ["a3_of_10.png", "a2_of_20.png", "a1_of_30.png"])
      #expect(frames.map(\.timeMs) == [1_767_859_512_000, 1_767_859_522_000, 1_767_859_532_000])
    }
    let error = #expect(throws: InvalidOption.self) { try options("a%*_of_%q") }
    #expect(error?.cause.contains("--fps") == true)
  }

  @Test func patternOfATimeOrdersPicturesAtARate() throws {
    let names = ["2021-03-05_12-00-00.png", "2021-03-05_12-01-07.png", "2021-03-06_12-00-00.png"]
    let frames = try fps(batch(names), "%Y-%m-%d_%H-%M-%S")[0].frames
    #expect(frames.map(\.source) == names)
    #expect(frames.map { $0.timeMs - 1_767_859_512_000 } == [0, 1_000, 2_000])
    // The advice without a pattern is this one.
    let error = #expect(throws: BadBatch.self) {
      try fps(batch(["2021-03-05_12-00-00.png", "2021-03-05_12-01-00.png", "2021-03-06_12-00-00.png"]))
    }
    #expect(error?.advice == "say what orders them: --name-time '%Y-%m-%d_%H-%M-%S'")
  }

  @Test func groupOfAPatternMakesASessionOfEachSource() throws {
    let batches = try fps(batch((1...3).flatMap { ["webcam_\($0).png", "screen_\($0).png"] }), "%g_%q")
    #expect(batches.map(\.session.description) == ["screen", "webcam"])
    #expect(batches.map(\.frames.count) == [3, 3])
  }

  @Test func thumbnailsBesidePicturesAreRecognisedBySize() throws {
    let large = try Fixture("single-frame").bytes("1767859512340.jpg")
    let size = try #require(ImageKind.jpeg.size(of: large))
    let path = try batch([])
    let name = lastComponent(of: path)
    for number in 1...4 {
      try scratch.file("\(name)/img_\(number).jpg", large)
      // A header tells the size.
      try scratch.file("\(name)/img_\(number)_thumb.png", Self.header(width: size.width / 4, height: size.height / 4))
    }
    let found = try fps(path)[0]
    #expect(found.frames.map(\.source) == ["img_1.jpg", "img_2.jpg", "img_3.jpg", "img_4.jpg"])
    #expect(found.refused.map(\.reason) == Array(repeating: "a small copy of a picture that is shown", count: 4))
    #expect(found.warnings == [])
  }

  private static func header(width: Int, height: Int) -> [UInt8] {
    func four(_ number: Int) -> [UInt8] { (0..<4).reversed().map { UInt8(number >> (8 * $0) & 0xFF) } }
    return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + four(13) + Array("IHDR".utf8) + four(width) + four(height)
  }
}
