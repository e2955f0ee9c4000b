import CFFmpeg
import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// The decoder of lossless WebPs makes the pixels of libavcodec, and accepts no file that libavcodec refuses.
@Suite struct LosslessWebPTests {
  private let limits = Limits()

  init() { FFmpegLog.silence() }

  /// Returns pictures with each transform: photographs, palettes of 2 to 256 colours, alpha, one pixel.
  private static func pictures() throws -> [[UInt8]] {
    let scratch = try ScratchDirectory()
    let page = Fixture("odd-size").path + "/1767859512340.jpg"
    let filters = [
      "null", "scale=1:1", "scale=2:33", "scale=33:2", "format=rgba,colorchannelmixer=aa=0.4", "crop=90:120:20:40",
      "format=gray,lutyuv=y='255*gt(val,128)'", "format=gray,lutyuv=y='bitand(val,192)'",
      "format=gray,lutyuv=y='bitand(val,240)'", "format=gray,lutyuv=y='bitand(val,252)'",
      "noise=alls=40:allf=t,crop=60:60", "format=rgba,geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':a='mod(X+Y,256)'",
    ]
    var arguments = ["-v", "error", "-i", page]
    for (index, filter) in filters.enumerated() {
      for effort in [0, 3, 6] {
        arguments += ["-vf", filter, "-frames:v", "1", "-c:v", "libwebp", "-lossless", "1", "-pix_fmt", "bgra"]
        arguments += ["-compression_level", "\(effort)", scratch.path("\(index)-\(effort).webp")]
      }
    }
    try Tool.output("ffmpeg", arguments)
    return try filters.indices.flatMap { index in
      try [0, 3, 6].map { try Fixture(file: scratch.path("\(index)-\($0).webp")).bytes() }
    }
  }

  private static func rgba(_ picture: FrameBuffer) throws -> [UInt8] {
    let picture = try PictureConverter().rgba(picture)
    let (start, stride) = picture.plane(0)
    return withExtendedLifetime(picture) {
      (0..<picture.height).flatMap { UnsafeBufferPointer(start: start + $0 * stride, count: 4 * picture.width) }
    }
  }

  /// Returns nil where libavcodec refuses the file.
  private func libavcodec(_ file: [UInt8]) throws -> FrameBuffer? {
    do { return try ImageCodec(.webp, limits: limits, nil).decode(file) } catch is RefusedPicture { return nil }
  }

  private func decode(_ file: [UInt8]) throws -> FrameBuffer? {
    LosslessWebPDecoder.decode(file, size: try #require(ImageKind.webp.size(of: file)))
  }

  @Test func picturesHaveThePixelsOfLibavcodec() throws {
    for (index, file) in try Self.pictures().enumerated() {
      let expected = try #require(try libavcodec(file))
      let picture = try #require(try decode(file), "picture \(index) was left to libavcodec")
      #expect(try Self.rgba(picture) == Self.rgba(expected), "picture \(index)")
    }
  }

  @Test func damagedFilesAreNotAcceptedUnlessByLibavcodec() throws {
    let files = try Self.pictures().filter { $0.count < 6_000 }
    var random = Random(seed: 48)
    var (accepted, left) = (0, 0)
    for index in 0..<Extent.of(600, full: 20_000) {
      var file = files[index % files.count]
      // Headers of codes are at the start.
      let end = index % 2 == 0 ? min(file.count, 90) : file.count
      for _ in 0...index % 3 { file[Int(random.int(25...Int64(end - 1)))] ^= 1 << UInt8(random.int(0...7)) }
      guard let picture = try decode(file) else {
        left += 1
        continue
      }
      accepted += 1
      let expected = try #require(try libavcodec(file), "libavcodec refuses file \(index)")
      #expect(try Self.rgba(picture) == Self.rgba(expected), "file \(index)")
    }
    #expect(accepted > 10 && left > 10)
  }

  @Test func otherFilesAreLeftToLibavcodec() throws {
    let file = try #require(try Self.pictures().first)
    for cut in stride(from: 30, to: file.count, by: 97) {
      var short = Array(file[..<cut])
      #expect(try decode(short) == nil)
      // With the sizes of a whole file.
      if cut % 2 == 1 { short.append(0) }
      for (place, size) in [(4, short.count - 8), (16, short.count - 20)] {
        for byte in 0..<4 { short[place + byte] = UInt8(truncatingIfNeeded: size >> (8 * byte)) }
      }
      #expect(try decode(short) == nil)
    }
    #expect(try decode(file + [0, 0]) == nil)
    for place in [4, 16, 20, 21, 24] {
      var other = file
      other[place] ^= 1
      #expect(LosslessWebPDecoder.decode(other, size: PixelSize(width: 181, height: 321)) == nil, "byte \(place)")
    }
    // With a palette whose packed indices are predicted.
    let packed = Fixture.root.appendingPathComponent("Fuzzing/regressions/picture/prediction-of-packed-indices")
    #expect(try decode(Array(Data(contentsOf: packed))) == nil)
    // With a colour profile.
    #expect(try decode(Fixture("wide-colour").bytes("p3.webp")) == nil)
  }
}
