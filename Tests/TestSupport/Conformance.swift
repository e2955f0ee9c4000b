import Foundation

/// Checks files against the standards: ISO/IEC 14496-12 (boxes, sample tables), 14496-15 (H.264 in them), ITU-T H.264 (parameter
/// sets). It shares no code with the product.
public enum Conformance {
  /// Returns the faults of a segment or film. Empty if the file conforms.
  public static func faults(ofMovie path: String) throws -> [String] {
    var checker = Checker(file: try Data(contentsOf: URL(fileURLWithPath: path)))
    checker.checkMovie()
    return checker.faults
  }

  /// Returns the faults of a fragment and of its initialisation file.
  public static func faults(ofFragment path: String, initialization: String) throws -> [String] {
    let head = try Data(contentsOf: URL(fileURLWithPath: initialization))
    var checker = Checker(file: try Data(contentsOf: URL(fileURLWithPath: path)))
    checker.checkFragment(initialization: head)
    return checker.faults
  }
}

/// A sample description of H.264.
private struct Description {
  let type: String
  let lengthSize: Int
  let sequence: Data
}

private struct Checker {
  let file: Data
  private(set) var faults: [String] = []

  init(file: Data) { self.file = file }

  private mutating func require(_ holds: Bool, _ what: @autoclosure () -> String) {
    if !holds { faults.append(what()) }
  }

  // MARK: - Movies

  mutating func checkMovie() {
    let boxes = MP4Boxes.read(file)
    require(boxes.reduce(0) { $0 + $1.size } == file.count, "14496-12, 4.2: boxes do not fill the file")
    require(boxes.first?.type == "ftyp", "14496-12, 4.3: ftyp is not first")
    require(boxes.filter { $0.type == "moov" }.count == 1, "14496-12, 8.2.1: not exactly one moov")
    guard let movie = boxes.first(where: { $0.type == "moov" }), let header = movie["mvhd"] else { return }
    let tracks = movie.children.filter { $0.type == "trak" }
    let ids = tracks.compactMap { $0["tkhd"].map { Self.timed($0, 12, 20, 4) } }
    require(Set(ids).count == tracks.count && !ids.contains(0), "14496-12, 8.3.2.3: track numbers")
    require(
      header.body.suffix(4).number > (ids.max() ?? 0), "14496-12, 8.2.2.3: the next track's number is in use")
    var longest: UInt64 = 0
    var taken: [Range<Int>] = []
    for track in tracks {
      longest = max(longest, checkTrack(track, &taken))
      require(
        track["tkhd"].map { Self.timed($0, 20, 28, 0) } == track["mdia"]?["mdhd"].map { Self.timed($0, 16, 24, 0) },
        "14496-12, 8.3.2.3: a track's duration is not its media's")
    }
    require(
      Self.timed(header, 16, 24, 0) == longest, "14496-12, 8.2.2.3: the movie's duration is not its longest track's")
    let sorted = taken.sorted { $0.lowerBound < $1.lowerBound }
    require(
      zip(sorted, sorted.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound }, "chunks of samples overlap")
    let free = boxes.filter { $0.type == "free" }.reduce(0) { $0 + $1.size }
    let size = file.count
    require(200 * free <= size, "\(free) of \(size) bytes are unused")
  }

  /// Returns a number whose position differs between versions 0 and 1 of a box. Width 0 means the width of the
  /// version's times.
  private static func timed(_ box: MP4Boxes.Box, _ short: Int, _ long: Int, _ width: Int) -> UInt64 {
    let isLong = box.body.integer(at: 0, bytes: 1) == 1
    return box.body.integer(at: isLong ? long : short, bytes: width > 0 ? width : isLong ? 8 : 4)
  }

  /// - Returns: The total duration of the samples.
  private mutating func checkTrack(_ track: MP4Boxes.Box, _ taken: inout [Range<Int>]) -> UInt64 {
    guard let media = track["mdia"], let table = media["minf"]?["stbl"], let entries = table["stsd"],
      let times = table["stts"], let chunkRuns = table["stsc"], let sizes = table["stsz"],
      let offsets = table["stco"] ?? table["co64"]
    else {
      faults.append("14496-12, 8.5.1: a sample table without one of its boxes")
      return 0
    }
    let durations = times.words(from: 8).pairs
    let count = Int(sizes.body.integer(at: 8, bytes: 4))
    require(durations.reduce(0) { $0 + $1.0 } == count, "14496-12, 8.6.1.2: stts and stsz tell of other numbers")
    require(durations.allSatisfy { $0.1 > 0 }, "14496-12, 8.6.1.2: a sample without duration")
    let duration = durations.reduce(0) { $0 + UInt64($1.0 * $1.1) }
    require(
      media["mdhd"].map { Self.timed($0, 16, 24, 0) } == duration, "14496-12, 8.4.2.3: mdhd is not the samples' sum")
    let places = offsets.places
    let runs = chunkRuns.words(from: 8).triples
    require(
      runs.first?.0 == 1 && zip(runs, runs.dropFirst()).allSatisfy { $0.0 < $1.0 }, "14496-12, 8.7.4: stsc's order")
    let descriptions = Int(entries.body.integer(at: 4, bytes: 4))
    require(MP4Boxes.read(entries.body.dropFirst(8).asData).count == descriptions, "14496-12, 8.5.2: stsd's count")
    require(runs.allSatisfy { (1...descriptions).contains($0.2) }, "14496-12, 8.7.4.3: no such sample description")
    require(Set(runs.map(\.2)).count == descriptions, "a sample description that no sample uses")
    let video = media["hdlr"]?.body.dropFirst(8).prefix(4).text == "vide" ? read(entries) : nil
    let keys = Set(table["stss"]?.words(from: 8) ?? [])
    var sample = 0
    for (index, place) in places.enumerated() {
      guard let run = runs.last(where: { $0.0 <= index + 1 }) else { break }
      var end = place
      for _ in 0..<run.1 {
        guard sample < count else { break }
        let size = Int(sizes.body.integer(at: 12 + 4 * sample, bytes: 4))
        sample += 1
        guard end + size <= file.count else {
          faults.append("14496-12, 8.7.5: a sample lies outside of the file")
          return duration
        }
        if let video, video.indices.contains(run.2 - 1) {
          checkSample(file.part(end, size), video[run.2 - 1], isKey: keys.contains(sample))
        }
        end += size
      }
      taken.append(place..<end)
    }
    require(sample == count, "14496-12, 8.7.4: chunks hold \(sample) of \(count) samples")
    return duration
  }

  // MARK: - H.264

  private mutating func read(_ entries: MP4Boxes.Box) -> [Description] {
    MP4Boxes.read(entries.body.dropFirst(8).asData).compactMap { entry in
      require(["avc1", "avc3"].contains(entry.type), "14496-15, 5.4.2: \(entry.type)")
      let children = MP4Boxes.read(entry.body.dropFirst(78).asData)
      guard let record = children.first(where: { $0.type == "avcC" })?.body, record.count > 8 else {
        faults.append("14496-15, 5.4.2.1: no avcC")
        return nil
      }
      let size = Int(record.integer(at: 6, bytes: 2))
      let sequence = record.part(8, size)
      require(record.integer(at: 5, bytes: 1) & 31 == 1, "one sequence parameter set was to be expected")
      require(record.part(1, 3) == sequence.part(1, 3), "14496-15, 5.3.3.1.2: another profile than the set's")
      let set = SequenceSet(sequence)
      let (width, height) = (Int(entry.body.integer(at: 24, bytes: 2)), Int(entry.body.integer(at: 26, bytes: 2)))
      require(
        (set.width, set.height) == (width, height),
        "14496-12, 12.1.3: \(width)×\(height), but the set says \(set.width)×\(set.height)")
      if let colour = children.first(where: { $0.type == "colr" })?.body, colour.prefix(4).text == "nclx" {
        let said = (0..<3).map { Int(colour.integer(at: 4 + 2 * $0, bytes: 2)) } + [Int(colour[10]) >> 7]
        require(set.colours == said, "14496-12, 12.1.5: colr says \(said), the set \(set.colours)")
      }
      return Description(
        type: entry.type, lengthSize: Int(record.integer(at: 4, bytes: 1)) & 3 + 1, sequence: sequence)
    }
  }

  private mutating func checkSample(_ sample: Data, _ description: Description, isKey: Bool) {
    var rest = sample
    var types: [Int] = []
    while rest.count > description.lengthSize {
      let size = Int(rest.integer(at: 0, bytes: description.lengthSize))
      guard size > 0, size <= rest.count - description.lengthSize else {
        faults.append("14496-15, 5.3.3: a NAL unit's length")
        return
      }
      let unit = rest.part(description.lengthSize, size)
      types.append(Int(unit[0]) & 31)
      if types.last == 7 { require(description.sequence == unit, "14496-15, 5.4.2: another set in band") }
      rest = rest.part(description.lengthSize + size, rest.count - description.lengthSize - size)
    }
    require(rest.isEmpty, "14496-15, 5.3.3: bytes behind the last NAL unit")
    require(
      description.type == "avc3" || !types.contains { [7, 8].contains($0) },
      "14496-15, 5.4.2: parameter sets in band under avc1")
    require(types.contains(5) == isKey, "14496-12, 8.6.2: stss and the sample differ in whether it is a key frame")
    require(types.contains { [1, 5].contains($0) }, "14496-15, 5.3.3: a sample without a picture")
  }

  // MARK: - Fragments

  mutating func checkFragment(initialization: Data) {
    let head = MP4Boxes.read(initialization)
    require(head.map(\.type) == ["ftyp", "moov"], "23000-19, 7.3.1: a CMAF header is ftyp and moov")
    require(head.last?["mvex"]?["trex"] != nil, "14496-12, 8.8.3: no trex")
    guard let entries = head.last?["trak"]?["mdia"]?["minf"]?["stbl"]?["stsd"], let description = read(entries).first
    else { return }
    let boxes = MP4Boxes.read(file)
    let types = boxes.map(\.type)
    require(boxes.reduce(0) { $0 + $1.size } == file.count, "14496-12, 4.2: boxes do not fill the file")
    require(types.first == "styp", "14496-12, 8.16.2: styp is not first")
    require(types.filter { $0 != "emsg" } == ["styp", "moof", "mdat"], "23000-19, 7.3.2: \(types)")
    require(
      types.lastIndex(of: "emsg").map { $0 < types.firstIndex(of: "moof")! } ?? true,
      "23009-1, 5.10.3.3: emsg behind moof")
    guard let index = types.firstIndex(of: "moof"), let run = boxes[index]["traf"]?["trun"],
      boxes[index]["traf"]?["tfdt"] != nil, types.count > index + 1
    else {
      faults.append("14496-12, 8.8: no run of samples")
      return
    }
    let start = boxes[..<index].reduce(0) { $0 + $1.size }
    let count = Int(run.body.integer(at: 4, bytes: 4))
    var place = start + Int(run.body.integer(at: 8, bytes: 4))
    require(place == start + boxes[index].size + 8, "14496-12, 8.8.8: the first sample does not begin the mdat")
    for sample in 0..<count {
      let size = Int(run.body.integer(at: 16 + 8 * sample + 4, bytes: 4))
      require(run.body.integer(at: 16 + 8 * sample, bytes: 4) > 0, "a sample without duration")
      guard place + size <= file.count else {
        faults.append("14496-12, 8.8.8: a sample lies outside of the file")
        return
      }
      checkSample(file.part(place, size), description, isKey: sample == 0)
      place += size
    }
    require(place == file.count, "14496-12, 8.8.8: bytes behind the last sample")
  }
}

/// The size and the colours in a sequence parameter set (ITU-T H.264, 7.3.2.1.1 and E.1.1).
private struct SequenceSet {
  private(set) var width = 0
  private(set) var height = 0
  /// Primaries, transfer, matrix, and 1 for full range.
  private(set) var colours: [Int] = []

  init(_ unit: Data) {
    // Without the emulation prevention bytes (7.4.1).
    var bytes: [UInt8] = []
    for byte in unit {
      if byte == 3, bytes.suffix(2) == [0, 0] { continue }
      bytes.append(byte)
    }
    var place = 8
    func bits(_ count: Int) -> Int {
      (0..<count).reduce(0) { value, _ in
        defer { place += 1 }
        return value << 1 | (place / 8 < bytes.count ? Int(bytes[place / 8] >> (7 - place % 8)) & 1 : 0)
      }
    }
    func golomb() -> Int {
      var zeros = 0
      while bits(1) == 0, zeros < 32 { zeros += 1 }
      return 1 << zeros - 1 + bits(zeros)
    }
    let profile = bits(8)
    _ = (bits(16), golomb())
    if [100, 110, 122, 244].contains(profile) {
      _ = (golomb(), golomb(), golomb(), bits(1))
      if bits(1) == 1 { return }
    }
    _ = golomb()
    if golomb() == 0 { _ = golomb() }
    _ = (golomb(), bits(1))
    let (columns, rows) = (golomb() + 1, golomb() + 1)
    let isProgressive = bits(1) == 1
    if !isProgressive { _ = bits(1) }
    _ = bits(1)
    var crop = [0, 0, 0, 0]
    if bits(1) == 1 { for index in 0..<4 { crop[index] = golomb() } }
    width = 16 * columns - 2 * (crop[0] + crop[1])
    height = 16 * rows * (isProgressive ? 1 : 2) - 2 * (crop[2] + crop[3])
    guard bits(1) == 1 else { return }
    if bits(1) == 1, bits(8) == 255 { _ = bits(32) }
    if bits(1) == 1 { _ = bits(1) }
    guard bits(1) == 1 else { return }
    _ = bits(3)
    let range = bits(1)
    colours = bits(1) == 1 ? [bits(8), bits(8), bits(8), range] : []
  }
}

extension MP4Boxes.Box {
  /// The 32-bit numbers of the box.
  fileprivate func words(from offset: Int) -> [Int] {
    stride(from: offset, to: body.count - 3, by: 4).map { Int(body.integer(at: $0, bytes: 4)) }
  }

  /// The chunk offsets in `stco` or `co64`.
  fileprivate var places: [Int] {
    let width = type == "co64" ? 8 : 4
    return stride(from: 8, to: body.count - width + 1, by: width).map { Int(body.integer(at: $0, bytes: width)) }
  }
}

extension [Int] {
  fileprivate var pairs: [(Int, Int)] { stride(from: 0, to: count - 1, by: 2).map { (self[$0], self[$0 + 1]) } }
  fileprivate var triples: [(Int, Int, Int)] {
    stride(from: 0, to: count - 2, by: 3).map { (self[$0], self[$0 + 1], self[$0 + 2]) }
  }
}

extension Data {
  fileprivate var asData: Data { Data(self) }
  fileprivate var text: String { String(decoding: self, as: UTF8.self) }
  fileprivate var number: UInt64 { integer(at: 0, bytes: count) }
  fileprivate func part(_ offset: Int, _ count: Int) -> Data { Data(dropFirst(offset).prefix(count)) }
}
