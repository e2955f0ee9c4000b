import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import Sessions

/// The numbers of a playlist's entries while jobs publish the batches of a session out of order.
@Suite struct PlaylistOrderTests {
  /// Checks a playlist against those before it.
  private struct Player {
    private var places: [Int64: String] = [:]
    private var first: Int64 = 0

    mutating func read(_ playlist: [UInt8]) {
      let number = HLSPlaylist.sequence(of: playlist).media
      #expect(number >= first)
      first = number
      let files = String(decoding: playlist, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("#") }
      for (index, file) in files.enumerated() {
        let place = String(file.prefix(21))
        #expect(
          places.updateValue(place, forKey: number + Int64(index)) ?? place == place, "number \(number) + \(index)")
      }
    }
  }

  private static func order(_ seed: Int) -> [Int] {
    var random = Random(seed: seed)
    var order = Array(0..<7)
    for index in order.indices.reversed() { order.swapAt(index, Int(random.int(0...Int64(index)))) }
    return order
  }

  @Test(arguments: 1...8)
  func noNumberNamesTwoEntries(seed: Int) throws {
    let package = try GrowingPackage()
    let isWindow = seed % 2 == 0
    let views = SessionViews(
      .hls, isWindow: isWindow, clock: { package.nowMs }, wallClock: { package.unixMs })
    var player = Player()
    for batch in Self.order(seed) {
      try package.publish(3 * batch..<3 * batch + 3, views)
      let path = package.output + "/walk/hls/session.m3u8"
      player.read(try #require(try DurableFile.contents(of: path, limit: .max)))
    }
    #expect(try Conformance.faults(ofPlaylistsIn: package.output + "/walk/hls", isWindow: isWindow) == [])
  }

  @Test(arguments: 1...4)
  func noNumberNamesTwoEntriesOfAnObjectStore(seed: Int) throws {
    let package = try GrowingPackage()
    let store = try package.store()
    var player = Player()
    for batch in Self.order(seed) {
      try package.publish(3 * batch..<3 * batch + 3, store)
      player.read(try #require(package.objects["output/walk/hls/session.m3u8"]))
    }
  }
}
