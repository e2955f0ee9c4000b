// An event of rrweb, as far as it changes a picture: {"type":2,"timestamp":<unix ms>,"data":{…}}. Recorders of apps put
// screenshots into it: as wireframes (PostHog), or as images of a page that has nothing else (Mixpanel, LaunchDarkly).

import JSON

/// An image in a recording.
struct RRWebImage {
  /// The ID of the window or element. A later image with the same ID replaces this one.
  let id: Int64
  /// The area on the screen; nil if the recording does not state it.
  let area: RRWebArea?
  /// Whether it shows a whole window, not a changed part of a picture.
  let isWindow: Bool
  /// The place of its base64 literal in the text.
  let literal: Range<Int>
}

enum RRWebChange {
  /// A full snapshot: these images, and no others.
  case replace([RRWebImage])
  case put(RRWebImage)
  /// The element shows another image.
  case update(id: Int64, literal: Range<Int>)
  case remove(id: Int64)
}

struct RRWebEvent {
  let timeMs: Int64
  private(set) var changes: [RRWebChange] = []
  /// A picture of a canvas.
  private(set) var canvas: (id: Int64, literal: Range<Int>)?
  /// The pointer events, in no space yet.
  private(set) var pointers = PointerEventList()
  /// The size of the screen in the recorder's unit.
  private(set) var screen: RRWebArea?
  /// The page that is opened.
  private(set) var page: PageView?
  private(set) var label: Label?
  /// Images that cannot be shown, with the reasons.
  private(set) var refused: [String] = []

  /// Whether the event cannot be read.
  private(set) var isLost = false

  /// An event that cannot be read.
  init(lostAt timeMs: Int64) { (self.timeMs, isLost) = (timeMs, true) }

  /// Whether a record is an event at all.
  static func isEvent(_ json: JSONValue) -> Bool {
    guard let members = json.object else { return false }
    return members["type"]?.integer != nil && members["timestamp"] != nil && members["data"] != nil
  }

  /// Whether it has, or may have had, a picture.
  var concernsPictures: Bool { isLost || canvas != nil || !changes.isEmpty || !refused.isEmpty }

  /// Whether no reader needs it.
  var isEmpty: Bool { !concernsPictures && pointers.isEmpty && screen == nil && page == nil && label == nil }

  /// - Parameters:
  ///   - limits: of the images in one event.
  ///   - touches: the number of pointer events that the batch may still have.
  /// - Throws: ``JSONError`` for an event without an instant.
  init(_ json: JSONValue, limits: Limits, touches: Int) throws(JSONError) {
    timeMs = try json.required("timestamp", .integer)
    guard let type = json.object?["type"]?.integer, let data = json.object?["data"], data.object != nil else { return }
    switch (type, data.object?["source"]?.integer) {
    case (2, _): readSnapshot(data)
    case (3, 0): readMutation(data)
    case (3, 9): readCanvas(data)
    case (3, let source) where RRWebPointers.isSource(source):
      RRWebPointers.read(data, timeMs: timeMs, into: &pointers, limit: touches)
    case (4, _):
      screen = RRWebArea(screen: data)
      page = data.text("href").flatMap { PageView(timeMs: timeMs, address: $0) }
    default: label = RRWebLabels.label(type: type, data, atMs: timeMs)
    }
    guard images <= limits.layers else { throw JSONError("\(images) images, more than the limit of \(limits.layers)") }
  }

  private var images: Int {
    changes.reduce(0) { count, change in
      switch change {
      case .replace(let images): count + images.count
      case .put, .update: count + 1
      case .remove: count
      }
    }
  }

  // MARK: - Full snapshots

  private mutating func readSnapshot(_ data: JSONValue) {
    if let list = data.object?["wireframes"]?.array {
      changes = [.replace(list.compactMap { image(ofWireframe: $0) })]
    } else if let node = data.object?["node"], let images = RRWebPage.images(in: node) {
      changes = [.replace(images)]
    }
  }

  private mutating func image(ofWireframe wireframe: JSONValue) -> RRWebImage? {
    let type = wireframe.text("type") ?? "unknown"
    guard type == "screenshot" else {
      refused.append("a wireframe of type \(type.prefix(40)) is no screenshot")
      return nil
    }
    guard let id = wireframe.object?["id"]?.integer else {
      refused.append("a screenshot without an id")
      return nil
    }
    guard let image = LocatedText(wireframe.object?["base64"]), image.mayBeImage else {
      refused.append("a screenshot without an image")
      return nil
    }
    return RRWebImage(id: id, area: RRWebArea(wireframe), isWindow: true, literal: image.range)
  }

  // MARK: - Later events

  private mutating func readMutation(_ data: JSONValue) {
    func list(_ key: String) -> [JSONValue] { data.object?[key]?.array ?? [] }
    changes = list("removes").compactMap { $0.object?["id"]?.integer.map { .remove(id: $0) } }
    for added in list("adds") {
      if let wireframe = added.object?["wireframe"] {
        if let image = image(ofWireframe: wireframe) { changes.append(.put(image)) }
      } else if let node = added.object?["node"], let image = RRWebPage.image(of: node) {
        changes.append(.put(image))
      }
    }
    for updated in list("updates") {
      if let image = updated.object?["wireframe"].flatMap({ image(ofWireframe: $0) }) { changes.append(.put(image)) }
    }
    for changed in list("attributes") {
      guard let id = changed.object?["id"]?.integer,
        let image = LocatedText(changed.object?["attributes"]?.object?["src"]), image.mayBeImage
      else { continue }
      changes.append(.update(id: id, literal: image.range))
    }
  }

  /// Canvas recorders draw the whole picture each time: they clear the canvas, and draw an image on it.
  private mutating func readCanvas(_ data: JSONValue) {
    guard let id = data.object?["id"]?.integer else { return }
    let commands = data.object?["commands"]?.array ?? []
    var isClear = false
    for command in commands {
      let arguments = command.object?["args"]?.array ?? []
      switch command.text("property") {
      case "clearRect": isClear = true
      case "drawImage"
      where isClear && arguments.count >= 3 && arguments[1].double == 0 && arguments[2].double == 0:
        let blob = arguments[0].object?["args"]?.array?.first?.object?["data"]?.array?.first
        guard let image = LocatedText(blob?.object?["base64"]), image.mayBeImage else {
          refused.append("a canvas image that is not in the recording")
          return
        }
        canvas = (id, image.range)
      default:
        canvas = nil
        refused.append("a drawing on a canvas, not a picture of all of it")
        return
      }
    }
  }
}
