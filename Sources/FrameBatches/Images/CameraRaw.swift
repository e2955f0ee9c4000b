// Camera raw files that are TIFFs: NEF, CR2, DNG, ARW, PEF and their like. Their first picture is a thumbnail or a preview; the
// pixels of the sensor are no picture yet. Tables are untrusted: the number of directories is bounded, and each place is checked.

/// A camera raw file.
package struct CameraRaw {
  /// The largest JPEG in it that is large enough to stand for the picture.
  package let preview: ArraySlice<UInt8>?

  /// Maximum number of directories that are read, and of tags in each. Real files have up to a dozen, and some hundred.
  private static let (maximumDirectories, maximumTags) = (32, 1_024)
  /// A preview's longer side in pixels, or half of the sensor's.
  private static let decentSide = 640
  /// Colours of a sensor: one filter for each pixel, or linear.
  private static let sensorColours: Set = [32_803, 34_892]
  /// Compressions of Sony, Nikon, Kodak and Pentax, and the lossy one of DNG.
  private static let sensorCompressions: Set = [32_767, 32_769, 34_713, 34_892, 65_000, 65_535]

  /// - Returns: nil for any other file.
  package init?(_ file: [UInt8]) {
    guard let tiff = ExifData(tiff: file[...]) else { return nil }
    let directories = Self.directories(of: tiff)
    let sensors = directories.filter { directory in
      Self.sensorColours.contains(directory.number(262) ?? 0)
        || Self.sensorCompressions.contains(directory.number(259) ?? 0)
    }
    // Canon marks its files; its sensor's directory tells no colours.
    let isMarked = file.count > 10 && file[8..<10].elementsEqual("CR".utf8)
    guard isMarked || !sensors.isEmpty else { return nil }
    let sensorSide = sensors.compactMap(\.size).map { max($0.width, $0.height) }.max() ?? .max
    let decent = min(Self.decentSide, sensorSide / 2)
    var best: (pixels: Int, jpeg: ArraySlice<UInt8>)?
    for directory in directories {
      for place in [directory.range(start: 513, count: 514), directory.onlyStrip] {
        guard let place, place.upperBound <= file.count, let size = Self.sizeOfPreview(file[place]),
          max(size.width, size.height) >= decent, size.width * size.height > best?.pixels ?? 0
        else { continue }
        best = (size.width * size.height, file[place])
      }
    }
    preview = best?.jpeg
  }

  /// The directories behind the first one, and those that they name.
  private static func directories(of tiff: ExifData) -> [ExifData] {
    var waiting = tiff.directories(limit: maximumDirectories).places
    var found: [ExifData] = []
    var seen: Set<Int> = []
    while let place = waiting.first, found.count < maximumDirectories {
      waiting.removeFirst()
      guard seen.insert(place).inserted else { continue }
      let directory = tiff.directory(at: place)
      guard directory.entryCount <= maximumTags else { continue }
      found.append(directory)
      waiting += directory.numbers(330, in: .image, limit: maximumDirectories) ?? []
    }
    return found
  }

  /// Returns the size of a JPEG that shows a picture. Sensors' pixels may be lossless JPEGs of 12 bits and more.
  private static func sizeOfPreview(_ bytes: ArraySlice<UInt8>) -> PixelSize? {
    guard bytes.starts(with: [0xFF, 0xD8, 0xFF]), let jpeg = JPEGFile(Array(bytes)), jpeg.reasonToRefuse == nil,
      jpeg.segments.last?.marker == 0xD9, let frame = jpeg.segments.first(where: \.isFrame), frame.marker != 0xC3
    else { return nil }
    return jpeg.size
  }
}

extension ExifData {
  fileprivate func number(_ tag: Int) -> Int? { numbers(tag, in: .image, limit: 1)?[0] }

  /// The bytes from the number of one tag on, as many as another one tells.
  fileprivate func range(start: Int, count: Int) -> Range<Int>? {
    guard let start = number(start), let count = number(count), count > 0 else { return nil }
    return start..<start + count
  }

  /// The only strip of a picture that is compressed as JPEG.
  fileprivate var onlyStrip: Range<Int>? {
    guard let compression = number(259), [6, 7].contains(compression) else { return nil }
    return range(start: 273, count: 279)
  }
}
