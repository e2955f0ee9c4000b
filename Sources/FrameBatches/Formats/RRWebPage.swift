// A page that an app's recorder generates to show screenshots: its only visible content is `img` elements with data URIs.

import JSON

enum RRWebPage {
  /// Returns the images of a page, in the order of its elements; nil for a page with other visible content.
  static func images(in node: JSONValue) -> [RRWebImage]? {
    guard let body = body(of: node) else { return nil }
    var images: [RRWebImage] = []
    var left = children(of: body).reversed() as [JSONValue]
    // Recursion is safe, because skeletons have a limited depth. Each element is visited once.
    while let element = left.popLast() {
      if let image = image(of: element) {
        images.append(image)
      } else if element.text("tagName") == "div" {
        left += children(of: element).reversed()
      } else if element.object?["type"]?.integer != textNode
        || element.text("textContent")?.allSatisfy(\.isWhitespace) != true
      {
        return nil
      }
    }
    return images.isEmpty ? nil : images
  }

  /// The kind of nodes that are text.
  private static let textNode: Int64 = 3

  /// An `img` element with a data URI.
  static func image(of node: JSONValue) -> RRWebImage? {
    guard node.text("tagName") == "img", let id = node.object?["id"]?.integer,
      let attributes = node.object?["attributes"], let image = LocatedText(attributes.object?["src"]), image.mayBeImage
    else { return nil }
    return RRWebImage(id: id, area: RRWebArea(attributes: attributes), isWindow: false, literal: image.range)
  }

  private static func body(of document: JSONValue) -> JSONValue? {
    let html = children(of: document).first { $0.text("tagName") == "html" }
    return html.flatMap { children(of: $0).first { $0.text("tagName") == "body" } }
  }

  private static func children(of node: JSONValue) -> [JSONValue] { node.object?["childNodes"]?.array ?? [] }
}

/// A rectangle of a screen in its recorder's unit: points, or pixels.
struct RRWebArea: Equatable {
  let x: Double
  let y: Double
  let width: Double
  let height: Double

  /// Reads a rectangle; nil for other values, and beyond the limit of size.
  private init?(_ x: Double?, _ y: Double?, _ width: Double?, _ height: Double?) {
    guard let x, let y, let width, let height, width > 0, height > 0,
      // The limit is far beyond any screen, and below any overflow.
      [x, y, width, height].allSatisfy({ $0.isFinite && abs($0) <= 100_000 })
    else { return nil }
    (self.x, self.y, self.width, self.height) = (x, y, width, height)
  }

  init?(_ wireframe: JSONValue) {
    func number(_ key: String) -> Double? { wireframe.object?[key]?.double }
    self.init(number("x"), number("y"), number("width"), number("height"))
  }

  /// A whole screen.
  init?(screen: JSONValue) {
    self.init(0, 0, screen.object?["width"]?.double, screen.object?["height"]?.double)
  }

  /// `width="96" height="32" style="position:absolute;left:0px;top:64px;"`.
  init?(attributes: JSONValue) {
    func length(_ key: String) -> Double? {
      attributes.text(key).flatMap { Double($0) } ?? attributes.object?[key]?.double
    }
    var places: [Substring: Double] = [:]
    for declaration in (attributes.text("style") ?? "").split(separator: ";") {
      let parts = declaration.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { continue }
      let value = parts[1].drop(while: \.isWhitespace)
      places[parts[0].drop(while: \.isWhitespace)] = Double(value.hasSuffix("px") ? value.dropLast(2) : value)
    }
    self.init(places["left"] ?? 0, places["top"] ?? 0, length("width"), length("height"))
  }

  /// Whether a smaller rectangle lies inside this one.
  func surrounds(_ other: RRWebArea) -> Bool {
    self != other && x <= other.x && y <= other.y && x + width >= other.x + other.width
      && y + height >= other.y + other.height
  }
}

extension RRWebArea {
  /// The space of pointer events on a picture that fills the rectangle.
  var space: PointerSpace { .area(x: x, y: y, width: width, height: height) }
}
