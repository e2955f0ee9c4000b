import Testing

@testable import Encoding
@testable import FrameBatches

/// Memory that a worker shares with its decoders, one decoder at a time.
@Suite struct SharedMemoryTests {
  private let slots: PictureSlots
  private let look = FrameComposition(content: .image(nil), masks: .rectangles([]))

  init() throws { slots = try DecoderForkServer.newSlots(Limits()) }

  @Test func nextDecoderSeesNoBytesOfThePreviousOne() throws {
    for index in PictureSlots.indices {
      let memory = slots.memory(of: index)
      // A compromised decoder reports fewer bytes than it wrote.
      for place in [0, 99, 100, 5_000, 4 << 20, memory.count - 1] { memory[place] = 7 }
      slots.recordWrite(index, bytes: 100)
    }
    #expect(slots.clear())
    for index in PictureSlots.indices {
      let memory = slots.memory(of: index)
      #expect([0, 99, 100, 5_000, 4 << 20, memory.count - 1].allSatisfy { memory[$0] == 0 })
    }
  }

  /// Memory of idle decoders is limited while another session gets a decoder.
  @Test(
    arguments: [
      ([], 0), ([3 << 20], 0), ([5 << 20], 1), ([3 << 20, 3 << 20], 1), ([1 << 20, 1 << 20, 1 << 20], 0),
      ([6 << 20, 1 << 20, 1 << 20], 1), ([1 << 20, 1 << 20, 40 << 20], 3),
    ] as [([Int], Int)])
  func oldestIdleDecodersMakeRoom(usedBytes: [Int], gone: Int) {
    #expect(DecoderForkServer.surplus(usedBytes) == gone)
  }

  @Test func memoryInUseIsNotReused() throws {
    let slot = slots.free()
    let layout = PlaneLayout(withoutGaps: PixelSize(width: 16, height: 16), used: 0)
    var picture: Picture? = try Picture(planes: slots, slot, layout)
    #expect(picture != nil && !slots.clear())
    picture = nil
    #expect(slots.clear())
    slots.recordWrite(slot, bytes: nil)
    #expect(!slots.clear())
  }

  /// The decoder reports all bytes that it wrote to the buffer, also if the final picture is another one.
  @Test(arguments: [true, false]) func decoderReportsAllWrittenBytes(isUpright: Bool) throws {
    let decoder = PictureDecoder(limits: Limits())
    let space = SharedPictureBuffer(slots.memory(of: 1))
    // Rotated: EXIF orientation 6, after the first marker.
    let exif: [UInt8] = [
      0xFF, 0xE1, 0, 34, 0x45, 0x78, 0x69, 0x66, 0, 0, 0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1,
      0, 6,
      0, 0, 0, 0, 0, 0,
    ]
    let file = isUpright ? WarmUp.jpeg : Array(WarmUp.jpeg[..<2]) + exif + WarmUp.jpeg[2...]
    let picture = try decoder.picture(from: [file], look, into: space).picture
    let layout = picture.lay(into: space)
    #expect(space.used >= 16 * 128 * 3 / 2)
    #expect(layout.bytes >= space.used)
    #expect(layout.isWithin(space.memory.count))
    #expect(layout.planes[0].stride == (isUpright ? 128 : 16))
    for plane in layout.planes {
      for row in 0..<plane.rows { #expect(space.memory[plane.offset + row * plane.stride] != 0) }
    }
  }

  /// With an invalid warm-up image, decoders would start slowly without an error.
  @Test func warmUpImagesCanBeDecoded() throws {
    for image in [WarmUp.jpeg, WarmUp.png, WarmUp.webp, WarmUp.lossyWebP] {
      let picture = try PictureDecoder(limits: Limits()).picture(from: [image], look).picture
      #expect((picture.width, picture.height) == (16, 16))
    }
  }
}
