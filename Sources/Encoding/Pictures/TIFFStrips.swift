// The part of a TIFF (TIFF 6.0) that libavcodec gets: one directory with the tags of an ordinary picture in strips. libavcodec would
// take other tags for instructions, and knows some of them only. Where a deflated strip ends early, it shows memory that nobody
// has written; so the strips are checked first.

import CDeflate
import FrameBatches

/// The picture of a TIFF's first directory.
struct TIFFStrips {
  /// Size, depth, compression, kind of colours, offsets, samples, rows and sizes of strips, predictor, palette, profile.
  private static let tags: Set<Int> = [256, 257, 258, 259, 262, 273, 277, 278, 279, 317, 320, 34_675]

  private let file: [UInt8]
  private let tiff: ExifData
  private let entries: [(tag: Int, bytes: ArraySlice<UInt8>)]
  private let size: PixelSize

  /// - Parameter size: the picture's size, within the limits.
  /// - Throws: ``RefusedPicture`` for damaged files, and for kinds of pictures that are rare on screens.
  init(_ file: [UInt8], size: PixelSize) throws(RefusedPicture) {
    guard min(size.width, size.height) > 0, let tiff = ExifData(tiff: file[...]), let entries = tiff.entries else {
      throw RefusedPicture(reason: "invalid data")
    }
    (self.file, self.tiff, self.entries, self.size) = (file, tiff, entries, size)
    guard isOrdinary else {
      throw RefusedPicture(
        reason: "a TIFF of a rare kind (compression \(compression), colours \(colours)) is not supported")
    }
    guard areStripsWhole else { throw RefusedPicture(reason: "invalid data") }
  }

  /// The file with a new directory at its end.
  var essential: [UInt8] {
    var kept: [Int: ArraySlice<UInt8>] = [:]
    for (tag, bytes) in entries where Self.tags.contains(tag) && kept[tag] == nil { kept[tag] = bytes }
    // libavcodec takes any picture with a palette for one of palette colours.
    if colours != 3 { kept[320] = nil }
    func bytes(_ value: Int, _ count: Int) -> [UInt8] {
      let digits = (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
      return tiff.isLittleEndian ? digits : digits.reversed()
    }
    var result = file
    // Directories begin at an even offset.
    if result.count % 2 == 1 { result.append(0) }
    result.replaceSubrange(4..<8, with: bytes(result.count, 4))
    result += bytes(kept.count, 2)
    for (_, entry) in kept.sorted(by: { $0.key < $1.key }) { result += entry }
    return result + bytes(0, 4)
  }

  var alpha: StoredAlpha {
    switch number(338, default: 2) {
    case 0: .unused
    case 1: .premultiplied
    default: .straight
    }
  }

  /// MaxSampleValue; nil if the file has none.
  var highestSample: Int? { tiff.numbers(281, in: .image, limit: 5)?.max() }

  private var compression: Int { number(259, default: 1) }
  private var colours: Int { number(262, default: -1) }
  private var depth: Int { number(258, default: 1) }
  private var samples: Int { number(277, default: 1) }

  /// Whether it is grey, RGB, or of a palette, in strips, perhaps with alpha.
  private var isOrdinary: Bool {
    let (channels, predictor) = (colours == 2 ? 3 : 1, number(317, default: 1))
    // No compression, LZW, deflate under both of its numbers, runs of bytes.
    guard [1, 5, 8, 32_946, 32_773].contains(compression), (0...3).contains(colours), [1, 2, 4, 8, 16].contains(depth),
      numbers(258, default: 1).allSatisfy({ $0 == depth }), predictor == 1 || predictor == 2 && depth >= 8
    else { return false }
    // Where white is 0, libavcodec would invert the alpha, too.
    guard samples == channels || samples == channels + 1 && [1, 2].contains(colours) else { return false }
    if colours == 3 { guard depth <= 8, entries.contains(where: { $0.tag == 320 }) else { return false } }
    // One plane, the highest bit first, whole numbers; no tiles in place of strips.
    return (samples == 1 || number(284, default: 1) == 1) && number(266, default: 1) == 1
      && numbers(339, default: 1).allSatisfy { $0 == 1 } && !entries.contains { (322...325).contains($0.tag) }
  }

  /// Whether each strip is in the file, and unpacks to all of its rows. libavcodec itself finds what other compressions lack.
  private var areStripsWhole: Bool {
    let stated = number(278, default: size.height)
    // 0 stands for all rows, like any number beyond them.
    let rows = stated == 0 ? size.height : min(stated, size.height)
    guard rows > 0 else { return false }
    let count = (size.height + rows - 1) / rows
    guard let starts = tiff.numbers(273, in: .image, limit: count), starts.count == count,
      let sizes = tiff.numbers(279, in: .image, limit: count), sizes.count == count
    else { return false }
    let rowBytes = (size.width * depth * samples + 7) / 8
    let inflater = [8, 32_946].contains(compression) ? StripInflater(maximumBytes: rows * rowBytes) : nil
    var total = 0
    for (index, (start, bytes)) in zip(starts, sizes).enumerated() {
      total += bytes
      // Strips that overlap would make much work of a small file.
      guard bytes > 0, start + bytes <= file.count, total <= file.count else { return false }
      let unpackedBytes = min(rows, size.height - index * rows) * rowBytes
      if let inflater, !inflater.has(unpackedBytes, in: file[start..<start + bytes]) { return false }
    }
    return true
  }

  /// Returns the first number of a tag; -1 where it has others than it should have.
  private func number(_ tag: Int, default value: Int) -> Int { numbers(tag, default: value)[0] }

  private func numbers(_ tag: Int, default value: Int) -> [Int] {
    guard entries.contains(where: { $0.tag == tag }) else { return [value] }
    return tiff.numbers(tag, in: .image, limit: 5) ?? [-1]
  }
}

/// Unpacks zlib streams to see whether they are whole. It is memory-safe: it owns its decompressor.
@safe private final class StripInflater {
  private let decompressor = unsafe libdeflate_alloc_decompressor()
  private var unpacked: [UInt8]

  init(maximumBytes: Int) { unpacked = [UInt8](repeating: 0, count: maximumBytes) }

  deinit { unsafe libdeflate_free_decompressor(decompressor) }

  /// Whether a stream has exactly so many bytes, at most those of the initializer, and their checksum.
  func has(_ count: Int, in stream: ArraySlice<UInt8>) -> Bool {
    guard let decompressor = unsafe decompressor, count <= unpacked.count else { return false }
    let status = unsafe stream.withUnsafeBufferPointer { stream in
      unsafe unpacked.withUnsafeMutableBufferPointer { unpacked in
        unsafe libdeflate_zlib_decompress(
          decompressor, stream.baseAddress, stream.count, unpacked.baseAddress, count, nil)
      }
    }
    return status == LIBDEFLATE_SUCCESS
  }
}
