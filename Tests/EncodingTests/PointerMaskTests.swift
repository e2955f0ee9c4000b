import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON

/// No pointer event under a mask is kept, and no line between two events crosses a mask.
@Suite struct PointerMaskTests: PointerPlacementSuite {
  private static func mask(_ x: Double, _ y: Double, _ width: Double, _ height: Double) -> Masks {
    .rectangles([Mask(x: x, y: y, width: width, height: height)])
  }

  @Test func eventUnderAMaskIsDroppedAndNoTrailLeadsThroughIt() throws {
    let shots = [Shot(timeMs: 0, masks: Self.mask(0, 100.5, 100, 50)), Shot(timeMs: 1_000)]
    let events = [
      Self.event(10, .down, 50, 90), Self.event(20, .move, 50, 99.99), Self.event(30, .move, 50, 100),
      Self.event(40, .up, 50, 150.9), Self.event(45, .down, 9, 9, pointer: 1), Self.event(50, .move, 50, 151),
      Self.event(60, .up, 50, 160), Self.event(70, .down, 50, 120), Self.event(80, .up, 50, 120),
      Self.event(1_001, .down, 50, 120),
    ]
    let found = try Self.place(events, on: shots, endMs: 2_000)
    #expect(
      Self.texts(found.touches[0]) == [
        "10 down 0 50.0 90.0", "20 move 0 50.0 99.99", "20 cancel 0 50.0 99.99", "45 down 1 9.0 9.0",
        "50 move 0 50.0 151.0", "60 up 0 50.0 160.0", "1001 down 0 50.0 120.0",
      ])
    #expect(found.warnings == [])
  }

  @Test func lineAcrossAMaskIsCutAlthoughBothOfItsEndsAreSeen() throws {
    let shots = [Shot(timeMs: 0, masks: Self.mask(0, 100, 100, 50)), Shot(timeMs: 1_000)]
    func kinds(_ events: PointerEvent...) throws -> [PointerEvent.Kind] {
      try Self.place(events, on: shots, endMs: 2_000).touches.flatMap { ($0?.events ?? []).map(\.kind) }
    }
    #expect(try kinds(Self.event(10, .down, 50, 90), Self.event(20, .move, 50, 160)) == [.down, .cancel, .move])
    #expect(try kinds(Self.event(10, .down, 50, 90), Self.event(20, .up, 90, 99.99)) == [.down, .up])
    #expect(try kinds(Self.event(10, .down, 50, 90), Self.event(20, .down, 50, 160)) == [.down, .down])
    #expect(try kinds(Self.event(10, .up, 50, 90), Self.event(20, .move, 50, 160)) == [.up, .move])
    #expect(
      try kinds(Self.event(10, .move, 50, 90), Self.event(20, .move, 9, 9, pointer: 1), Self.event(30, .up, 50, 150))
        == [.move, .cancel, .move, .up])
    #expect(try kinds(Self.event(1_010, .down, 50, 90), Self.event(1_020, .move, 50, 160)) == [.down, .move])
  }

  @Test(arguments: [
    ((0.0, 0.0), (10.0, 10.0), true), ((0, 5), (10, 5), true), ((5, 0), (5, 10), true), ((3, 0), (10, 2), false),
    ((0, 4), (2.9, 4), false), ((0, 4), (3, 4), true), ((7, 0), (7, 10), false), ((6.99, 0), (6.99, 10), true),
    ((0, 9), (9, 0), true), ((0, 14), (14, 0), false), ((4, 4), (4, 4), true), ((9, 9), (9, 9), false),
  ])
  func lineMeetsARectangle(from: (Double, Double), to: (Double, Double), meets: Bool) {
    for (one, other) in [(from, to), (to, from)] {
      #expect(Self.mask(3, 3, 4, 4).hide(PointerLine(from: one, to: other)) == meets)
    }
  }

  @Test func masksOfTheNextPictureHideWhatComesAfterACapture() throws {
    let shots = [Shot(timeMs: 0), Shot(timeMs: 1_000, masks: Self.mask(0, 100, 100, 100)), Shot(timeMs: 2_000)]
    let events = [0, 1, 999, 1_000, 1_999, 2_000].map { Self.event($0, .down, 5, 150) }
    #expect(try Self.place(events, on: shots, endMs: 3_000).touches[0]?.events.map(\.offsetMs) == [0, 0, 2_000])
    let above = [0, 1, 999, 1_000, 1_999, 2_000].map { Self.event($0, .down, 5, 50) }
    #expect(try Self.place(above, on: shots, endMs: 3_000).touches[0]?.events.count == 6)
  }

  @Test(arguments: ["blackout", "refused", "blind", "turned"])
  func masksThatCannotBeAppliedAsGivenHideAllEvents(kind: String) throws {
    var shots = [Shot(timeMs: 0), Shot(timeMs: 1_000), Shot(timeMs: 2_000)]
    var blindMs: [Int64] = []
    switch kind {
    case "blackout": shots[1].masks = .everything(because: "of a test")
    case "refused": (shots[1].masks, shots[1].isDecoded) = (Self.mask(0, 0, 1, 1), false)
    case "blind": blindMs = [1_000]
    default: (shots[1].masks, shots[1].size) = (Self.mask(0, 0, 1, 1), PixelSize(width: 200, height: 100))
    }
    let events = [0, 500, 1_000, 1_999, 2_000].map { Self.event($0, .down, 50, 50) }
    let found = try Self.place(events, on: shots, endMs: 3_000, blindMs: blindMs)
    let kept = found.touches.enumerated().flatMap { index, touches in
      (touches?.events ?? []).filter { $0.kind == .down }.map {
        found.segments[index][0].startMs - Self.start + $0.offsetMs
      }
    }
    // A turned picture has the pixels of its masks while it is shown.
    #expect(kept == (kind == "turned" ? [0, 1_000, 1_999, 2_000] : [0, 2_000]))
  }

  @Test func masksOfLayersHideAtTheirPlaceInThePicture() {
    let layer = Layer(raw: nil, x: 10, y: 20, size: nil, opacity: 1, masks: Self.mask(5, 5, 10, 10))
    let look = FrameComposition(content: .layers([layer], width: 100, height: 100), masks: .none)
    #expect(look.hidesAnything)
    #expect(look.hides(.init(x: 15, y: 25)) && look.hides(.init(x: 24.9, y: 34.9)))
    #expect(!look.hides(.init(x: 14.9, y: 25)) && !look.hides(.init(x: 25, y: 35)) && !look.hides(.init(x: 5, y: 5)))
    let all = Layer(raw: nil, x: 0, y: 0, size: nil, opacity: 1, masks: .everything(because: ""))
    #expect(FrameComposition(content: .layers([all], width: 1, height: 1), masks: .none).hides(.init(x: 900, y: -900)))
  }

  @Test func edgesThatAreNoNumbersHideEverythingOnTheirSide() {
    for value in [Double.nan, .infinity, -.infinity] {
      let masks = Masks.rectangles([Mask(x: 0, y: 0, width: 10, height: 10).scaled(value, 1)])
      #expect(masks.hide(.init(x: 5, y: 5)) || value == -.infinity, "\(value)")
    }
    #expect(Self.mask(10.5, 0, 0, 1).hide(.init(x: 10, y: 0.5)))
  }

  /// Random masks, spaces, refused frames and unreadable masks: nothing under a mask in force is kept, no trail leads through a
  /// dropped event, and what is far from every mask is kept.
  @Test(arguments: Extent.of(1...60, full: 1...2_000))
  func noEventUnderAMaskInForceIsKeptAndNoTrailCrossesOne(seed: Int) throws {
    var random = Random(seed: seed)
    let size = PixelSize(width: Int(random.int(20...300)), height: Int(random.int(20...300)))
    let shots = (0..<Int(random.int(1...8))).map { index in
      var shot = Shot(timeMs: 1_000 * Int64(index), size: size)
      if random.once(in: 2) {
        shot.masks = .rectangles(
          (0..<random.int(1...3)).map { _ in
            Mask(
              x: Double(random.int(-100...1_500)) / 8, y: Double(random.int(-100...1_500)) / 8,
              width: Double(random.int(0...800)) / 8, height: Double(random.int(0...800)) / 8)
          })
      } else if random.once(in: 8) {
        shot.masks = .everything(because: "of a test")
      }
      shot.isDecoded = index == 0 || !random.once(in: 5)
      return shot
    }
    let blindMs = random.once(in: 4) ? [random.int(0...7) * 1_000] : []
    let spaces: [PointerSpace] = [
      .pixels, .picture(scale: 3), .area(x: 10, y: -5, width: Double(size.width) / 3, height: Double(size.height) / 3),
    ]
    let space = spaces[Int(random.int(0...2))]
    var timeMs: Int64 = -50
    let events = (0..<300).map { _ in
      timeMs += random.int(1...60)
      let kinds = PointerEvent.Kind.allCases
      return Self.event(
        timeMs, kinds[Int(random.int(0...3))], Double(random.int(-2_000...30_000)) / 100,
        Double(random.int(-2_000...30_000)) / 100, pointer: Int32(random.int(0...2)),
        space: random.once(in: 10) ? spaces[Int(random.int(0...2))] : space)
    }
    let found = try Self.place(events, on: shots, endMs: 1_000 * Int64(shots.count), blindMs: blindMs)
    var kept: [Int32: [(timeMs: Int64, kind: PointerEvent.Kind)]] = [:]
    var lines: [Int32: (x: Double, y: Double)] = [:]
    for (touches, holds) in zip(found.touches, found.segments) {
      guard let touches else { continue }
      for event in touches.events {
        let timeMs = holds[0].startMs - Self.start + event.offsetMs
        kept[event.pointer, default: []].append((timeMs, event.kind))
        let (x, y) = (event.x * Double(size.width) / touches.width, event.y * Double(size.height) / touches.height)
        let from = event.kind == .down ? nil : lines[event.pointer]
        lines[event.pointer] = event.kind == .down || event.kind == .move ? (x, y) : nil
        // The masks of the last picture that was decoded, and all that is in force since.
        let inForce = shots.indices.filter { shots[$0].timeMs <= timeMs }
        let shown = try #require(inForce.last { shots[$0].isDecoded })
        #expect(!shots[shown].masks.covers(x, y), "\(event) under a mask of picture \(shown)")
        for part in stride(from: 0.0, to: 1, by: 0.03) {
          guard let from, event.kind != .cancel else { break }
          let point = (from.x + (x - from.x) * part, from.y + (y - from.y) * part)
          #expect(!shots[shown].masks.covers(point.0, point.1), "a line from \(from) to \(event) crosses a mask")
        }
        let latest = try #require(inForce.last)
        #expect(latest == shown || shots[latest].masks.areEmpty, "\(event) while masks of a refused frame are in force")
        #expect(
          !blindMs.contains { $0 <= timeMs && timeMs < $0 + 1_000 && $0 < 1_000 * shots.count }, "\(event) is blind")
      }
    }
    for pointer in Int32(0)...2 {
      // No line joins the events before and after one that is left out.
      var rest = (kept[pointer] ?? [])[...]
      var isCut = true
      for event in events where event.pointer == pointer {
        let time = event.timeMs - Self.start
        if let next = rest.first, next == (time, event.kind) {
          rest.removeFirst()
          isCut = event.kind == .up || event.kind == .cancel
          // A cut has the time of the event before it.
          if let cut = rest.first, cut == (time, .cancel) {
            rest.removeFirst()
            isCut = true
          }
        } else {
          #expect(isCut, "pointer \(pointer): a trail leads through \(event)")
        }
      }
    }
    let isPlain = shots.allSatisfy { $0.masks.areEmpty } && blindMs.isEmpty
    let inTime = events.count { (Self.start..<Self.start + 1_000 * Int64(shots.count)).contains($0.timeMs) }
    #expect(!isPlain || kept.values.joined().count >= inTime)
  }
}

extension Masks {
  /// Whether a mask covers a part of the pixel at a point.
  fileprivate func covers(_ x: Double, _ y: Double) -> Bool {
    guard case .rectangles(let list) = self else { return true }
    return list.contains { mask in
      x >= mask.x.rounded(.down) && x < (mask.x + mask.width).rounded(.up) && y >= mask.y.rounded(.down)
        && y < (mask.y + mask.height).rounded(.up)
    }
  }
}
