import CFFmpeg
import Testing

@testable import Encoding
@testable import FrameBatches

/// Where two pictures of a film differ.
@Suite struct DecodedChangeTests {
  /// Makes a grey picture in which some rectangles have another luma.
  private func picture(
    _ width: Int = 100, _ height: Int = 70, noise: UInt8 = 0, _ changes: [(x: Int, y: Int, side: Int, luma: UInt8)] = []
  ) throws -> FrameBuffer {
    let picture = try FrameBuffer(width: width, height: height, format: AV_PIX_FMT_YUV420P)
    for index in 0..<3 {
      let (start, stride) = picture.plane(index)
      let half = index == 0 ? 0 : 1
      for row in 0..<(height + half) >> half {
        for column in 0..<(width + half) >> half {
          start[row * stride + column] = 128 + (index == 0 ? noise * UInt8((row + column) % 2) : 0)
        }
      }
    }
    let (start, stride) = picture.plane(0)
    for change in changes {
      for row in change.y..<change.y + change.side {
        for column in change.x..<change.x + change.side { start[row * stride + column] = change.luma }
      }
    }
    return picture
  }

  private func change(
    _ changes: [(x: Int, y: Int, side: Int, luma: UInt8)], noise: UInt8 = 0
  ) throws -> DecodedChange {
    try #require(DecodedChange(of: picture(noise: noise, changes), since: picture()))
  }

  @Test func equalPicturesHaveNoRegion() throws {
    let change = try change([])
    #expect(change.isEqual && change.blocks == 0 && change.total == 35)
    #expect(change.regions(ofBlocks: nil).isEmpty && change.regions(ofBlocks: 5).isEmpty)
    #expect(try DecodedChange(of: picture(100, 70), since: picture(70, 100)) == nil)
  }

  @Test func connectedBlocksAreOneRegion() throws {
    // Two blocks that touch at a corner, and a block at the edge, which is smaller.
    let change = try change([(20, 20, 10, 255), (32, 32, 16, 255), (96, 64, 4, 255)])
    #expect(!change.isEqual && change.blocks == 3)
    #expect(
      change.regions(ofBlocks: nil) == [
        PictureRegion(x: 16, y: 16, width: 32, height: 32), PictureRegion(x: 96, y: 64, width: 4, height: 6),
      ])
  }

  @Test func noiseIsNoChange() throws {
    let change = try change([(20, 20, 10, 255)], noise: 6)
    #expect(!change.isEqual && change.blocks == 1)
    #expect(change.regions(ofBlocks: nil) == [PictureRegion(x: 16, y: 16, width: 16, height: 16)])
  }

  /// The manifest knows that two blocks differ, one of them by less than noise.
  @Test func knownNumberFindsWeakChanges() throws {
    let change = try change([(0, 0, 16, 255), (48, 48, 3, 140)])
    #expect(change.blocks == 1)
    #expect(
      change.regions(ofBlocks: 2) == [
        PictureRegion(x: 0, y: 0, width: 16, height: 16), PictureRegion(x: 48, y: 48, width: 16, height: 16),
      ])
  }

  @Test func largestRegionsStay() throws {
    let single = (0..<20).map { (x: $0 % 10 * 32, y: $0 / 10 * 32, side: 16, luma: UInt8(255)) }
    let large = (x: 0, y: 96, side: 32, luma: UInt8(255))
    let change = try #require(
      DecodedChange(of: picture(320, 160, single + [large]), since: picture(320, 160)))
    let regions = change.regions(ofBlocks: nil)
    #expect(change.blocks == 24 && regions.count == 16)
    #expect(regions.last == PictureRegion(x: 0, y: 96, width: 32, height: 32))
  }
}
