import Encoding
import FrameBatches
import Sessions

/// Draws a contact sheet tile by tile, with one segment in memory at a time.
struct SheetDrawing {
  let canvas: SheetCanvas
  /// Segments with missing pictures.
  private(set) var damaged: [Problem] = []
  private let plan: ContactSheetPlan
  private let layout: SheetLayout
  private let directory: SessionDirectory
  private let films: SegmentPictures

  private enum Ink {
    static let paper = Colour(red: 246, green: 246, blue: 244)
    static let text = Colour(red: 32, green: 32, blue: 32)
    static let paleText = Colour(red: 112, green: 112, blue: 112)
    static let line = Colour(red: 196, green: 196, blue: 192)
    static let gap = Colour(red: 226, green: 226, blue: 221)
    static let damage = Colour(red: 247, green: 214, blue: 208)
    static let damageText = Colour(red: 150, green: 24, blue: 12)
  }

  init(_ plan: ContactSheetPlan, _ layout: SheetLayout, from directory: SessionDirectory) throws {
    self.plan = plan
    self.layout = layout
    self.directory = directory
    films = SegmentPictures(directory.reader, isRGB: true)
    canvas = try SheetCanvas(width: layout.width, height: layout.height, background: Ink.paper)
  }

  mutating func draw(_ progress: (Int, Int) throws -> Void) throws {
    for (index, line) in layout.header.enumerated() {
      canvas.write(
        line, x: SheetLayout.margin, y: SheetLayout.margin + index * layout.lineHeight, scale: layout.scale,
        index == 0 ? Ink.text : Ink.paleText)
    }
    var index = 0
    while index < plan.tiles.count {
      switch plan.tiles[index] {
      case .picture(let segment, _):
        let tiles = plan.tiles[index...].prefix { $0.picture?.segment.startMs == segment.startMs }
        let frames = tiles.compactMap { $0.picture?.frame }
        try draw(segment, frames, from: index)
        index += frames.count
      case .gap(let startMs, let lengthMs, let count):
        drawNotice(index, SheetText.gaps(count, lengthMs, one: "gap"), Ink.gap, Ink.text, at: startMs)
        index += 1
      case .lost(let startMs, let count):
        let text = "lost: \(SegmentName.video(startMs))" + (count == 1 ? "" : " and \(count - 1) more")
        drawNotice(index, text, Ink.damage, Ink.damageText, at: startMs)
        index += 1
      }
      try progress(index, plan.tiles.count)
    }
  }

  private mutating func draw(_ segment: PublishedSegment, _ frames: [Int], from first: Int) throws {
    do {
      let pictures = try films.pictures(
        of: segment, bytes: try directory.video(of: segment), frames: frames,
        fitting: SheetLayout.box(layout.tile.width))
      for (offset, picture) in pictures.enumerated() {
        let area = layout.tileArea(first + offset)
        // Next to its label.
        let place = SheetArea(
          x: area.x + (area.width - picture.width) / 2, y: area.y + area.height - picture.height,
          width: picture.width, height: picture.height)
        canvas.frame(place, Ink.line)
        canvas.lay(picture, x: place.x, y: place.y)
        drawLabel(under: area, segment.frames[frames[offset]].timeMs)
      }
    } catch let bad as BadSession {
      damaged.append(Problem(file: bad.file, what: bad.cause))
      for (offset, frame) in frames.enumerated() {
        drawNotice(
          first + offset, "damaged: \(bad.file)", Ink.damage, Ink.damageText, at: segment.frames[frame].timeMs)
      }
    }
  }

  /// Draws a hatched tile with a text in place of a picture.
  private func drawNotice(_ index: Int, _ text: String, _ stripes: Colour, _ colour: Colour, at startMs: Int64) {
    let area = layout.tileArea(index)
    canvas.hatch(area, stripes)
    canvas.frame(area, Ink.line)
    let letter = BitmapFont.advance * layout.scale
    let lines = SheetText.wrap(text, columns: (area.width - 2 * letter) / letter)
    let top = area.y + (area.height - lines.count * layout.lineHeight) / 2
    canvas.fill(
      SheetArea(
        x: area.x, y: top - layout.lineHeight / 2, width: area.width, height: (lines.count + 1) * layout.lineHeight),
      Ink.paper)
    for (number, line) in lines.enumerated() {
      write(line, centredIn: area, y: top + number * layout.lineHeight + layout.scale, colour)
    }
    drawLabel(under: area, startMs)
  }

  private func drawLabel(under area: SheetArea, _ ms: Int64) {
    let lines = SheetLayout.label(of: ms, from: plan.startMs, width: layout.tile.width)
    for (number, line) in lines.enumerated() {
      // The time of day is the most important; its date and the offset are paler.
      let isClock = line.contains(":") && !line.hasPrefix("+")
      write(
        line, centredIn: area, y: area.y + area.height + SheetLayout.labelGap + number * layout.lineHeight,
        isClock ? Ink.text : Ink.paleText)
    }
  }

  private func write(_ line: String, centredIn area: SheetArea, y: Int, _ colour: Colour) {
    let width = BitmapFont.width(of: line) * layout.scale
    canvas.write(line, x: area.x + (area.width - width) / 2, y: y, scale: layout.scale, colour)
  }
}
