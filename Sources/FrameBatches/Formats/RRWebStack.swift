// The stack of images on a screen. An app's window is the lowest; dialogs and changed parts lie above it.

import JSON

/// The images of one recording at one instant.
struct RRWebStack {
  /// Maximum number of images: more than any screen has. Each change searches the whole stack.
  private static let imageLimit = 256

  private(set) var images: [RRWebImage] = []
  /// Whether a full snapshot has set the lowest image.
  private var hasSnapshot = false
  /// Dialogs that came as full snapshots of their own: their recorder does not say when they close.
  private var dialogs: Set<Int64> = []

  /// - Returns: whether the picture may have changed.
  /// - Throws: ``JSONError`` for an image without an image below it.
  mutating func apply(_ changes: [RRWebChange]) throws(JSONError) -> Bool {
    var isChanged = false
    for change in changes {
      switch change {
      case .replace(let images):
        replace(images)
        isChanged = !images.isEmpty || isChanged
      case .put(let image):
        try put(image)
        isChanged = true
      case .update(let id, let literal):
        isChanged = update(id, literal) || isChanged
      case .remove(let id):
        dialogs.remove(id)
        let count = images.count
        images.removeAll { $0.id == id }
        isChanged = images.count < count || isChanged
      }
    }
    return isChanged && !images.isEmpty
  }

  /// Clears a picture that consists of parts: if a part is lost, later pictures would be wrong.
  mutating func loseTrack() {
    if images.contains(where: { !$0.isWindow }) { (images, hasSnapshot) = ([], false) }
  }

  /// Replaces the images. Android writes a snapshot for each window: a smaller window is a dialog, and is added on top.
  private mutating func replace(_ snapshot: [RRWebImage]) {
    if let base = images.first, snapshot.count == 1, snapshot[0].isWindow, snapshot[0].id != base.id,
      let area = base.area, let smaller = snapshot[0].area, area.surrounds(smaller)
    {
      dialogs.insert(snapshot[0].id)
      place(snapshot[0])
      return
    }
    (images, dialogs, hasSnapshot) = (snapshot, [], true)
  }

  /// - Throws: ``JSONError`` for a changed part of a picture that is not in the recording.
  private mutating func put(_ image: RRWebImage) throws(JSONError) {
    guard !images.isEmpty || hasSnapshot || image.isWindow else {
      throw JSONError("a part of a picture; the picture below it is not in the batch")
    }
    place(image)
    guard images.count <= Self.imageLimit else {
      (images, hasSnapshot) = ([], false)
      throw JSONError("more than \(Self.imageLimit) images one on the other")
    }
  }

  private mutating func place(_ image: RRWebImage) {
    if let index = images.firstIndex(where: { $0.id == image.id }) {
      images[index] = image
      // A new image of a window below a dialog means that the dialog is closed.
      let shown = images[...index]
      images = shown + images[(index + 1)...].filter { !dialogs.contains($0.id) }
    } else if image.isWindow, let base = images.first?.area, let area = image.area, area.surrounds(base) {
      images.insert(image, at: 0)
    } else {
      images.append(image)
    }
  }

  private mutating func update(_ id: Int64, _ literal: Range<Int>) -> Bool {
    if let index = images.firstIndex(where: { $0.id == id }) {
      images[index] = RRWebImage(id: id, area: images[index].area, isWindow: images[index].isWindow, literal: literal)
      return true
    }
    // A batch in the middle of a session does not repeat Mixpanel's only element.
    guard images.isEmpty, !hasSnapshot, id == Self.mixpanelElement else { return false }
    images = [RRWebImage(id: id, area: nil, isWindow: true, literal: literal)]
    return true
  }

  private static let mixpanelElement: Int64 = 28

  /// Returns the composition of all images. The lowest image is not scaled. The positions and sizes of the others are in the unit
  /// of the lowest image's area; their edges are rounded to its pixels.
  ///
  /// - Parameter size: returns the size of the image in a literal, in pixels.
  func look(
    _ limits: Limits, size: (Range<Int>) throws -> PixelSize?
  ) throws -> FrameComposition {
    guard images.count > 1 else { return FrameComposition(content: .image(nil), masks: .none) }
    guard images.count <= limits.layers else {
      throw JSONError("\(images.count) images one on the other, more than the limit of \(limits.layers)")
    }
    let base = images[0]
    guard let area = base.area else { throw JSONError("an image without a size, and others above it") }
    guard let picture = try size(base.literal), min(picture.width, picture.height) > 0 else {
      throw JSONError("the size of the lowest image is not known")
    }
    if let fault = picture.excess(of: limits) { throw JSONError(fault.text) }
    let (across, down) = (Double(picture.width) / area.width, Double(picture.height) / area.height)
    var layers = [Layer(raw: nil, x: 0, y: 0, size: nil, opacity: 1, masks: .none)]
    for image in images.dropFirst() {
      guard let place = image.area else { throw JSONError("an image without a size above another") }
      let (left, top) = ((place.x - area.x) * across, (place.y - area.y) * down)
      let (right, bottom) = (left + place.width * across, top + place.height * down)
      // Areas are limited, but the ratio of pixels to units is not.
      guard [left, top, right, bottom].allSatisfy({ abs($0) <= 1_000_000 }) else {
        throw JSONError("an image far outside of the picture")
      }
      let (x, y) = (Int(left.rounded()), Int(top.rounded()))
      let fitted = PixelSize(width: Int(right.rounded()) - x, height: Int(bottom.rounded()) - y)
      if let fault = fitted.excess(of: limits) { throw JSONError(fault.text) }
      guard fitted.isWithin(limits) else { throw JSONError("an image of \(fitted.width)×\(fitted.height) pixels") }
      layers.append(Layer(raw: nil, x: x, y: y, size: fitted, opacity: 1, masks: .none))
    }
    return FrameComposition(
      content: .layers(layers, width: picture.width, height: picture.height), masks: .none)
  }
}
