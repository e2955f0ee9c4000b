// Reads a JSON text of any size with little memory: one part of the text, and the skeletons of one record and of one event in
// it. The text is an array of records, one record, or lines of either. A broken line is reported, and reading goes on with the
// next line; a broken array or object ends the reading.

import JSON

struct RecordScanner {
  private struct Container {
    let isObject: Bool
    /// Whether its elements are passed on one by one. Then it belongs to no skeleton.
    var isList = false
    /// Whether its end is the end of a record's or event's skeleton.
    var isWhole = false
  }

  /// How the text is divided; known at the first end of a line.
  private enum Layout { case unknown, lines, document }

  /// Bytes of each read.
  private static let partBytes = 256 << 10
  /// Maximum nesting of values. A page's elements may be nested deeply.
  private static let depthLimit = 512
  /// Maximum nesting in a skeleton. Deeper values are left out, because no format reads them.
  private static let skeletonDepth = 24
  /// Maximum nesting of a list of events in a record.
  private static let listDepth = 2

  private let take: (RecordPiece) throws -> Bool
  private let limit: Int
  private var offset = 0
  private var containers: [Container] = []
  private var skeletons: [SkeletonWriter] = []
  /// The number of containers around a value that is left out of its skeleton; nil outside such values.
  private var omittedDepth: Int?
  private var literal: OpenLiteral?
  private var expectsKey = false
  /// The list of events that was entered last.
  private var list = EventList.snapshots
  /// The last string in a list: a window's name.
  private var name: [UInt8] = []
  private var layout = Layout.unknown
  private var skipsLine = false
  private var isFinished = false

  /// Reads a text to its end.
  ///
  /// - Parameter take: takes each piece in the order of the text; it returns false to end the reading.
  /// - Throws: ``DiskError`` and what `take` throws.
  static func scan(_ text: StreamContents, limits: Limits, _ take: (RecordPiece) throws -> Bool) throws {
    try withoutActuallyEscaping(take) { take in
      var scanner = RecordScanner(take: take, limit: limits.jsonBytes)
      while scanner.offset < text.count, !scanner.isFinished {
        let part = try text.bytes(scanner.offset..<min(text.count, scanner.offset + partBytes))
        guard !part.isEmpty else { break }
        try unsafe part.withUnsafeBufferPointer { try unsafe scanner.read($0) }
        scanner.offset += part.count
      }
      if !scanner.isFinished, !scanner.skipsLine { try scanner.end() }
    }
  }

  private init(take: @escaping (RecordPiece) throws -> Bool, limit: Int) {
    (self.take, self.limit) = (take, limit)
  }

  private mutating func end() throws {
    if literal != nil || !containers.isEmpty { try fail(at: offset, "the text breaks off") }
  }

  private mutating func read(_ part: UnsafeBufferPointer<UInt8>) throws {
    var index = 0
    while index < part.count, !isFinished {
      if skipsLine {
        guard let end = unsafe part.find("\n", in: index..<part.count) else { return }
        (index, skipsLine) = (end, false)
      }
      if literal != nil {
        try unsafe readLiteral(part, &index)
      } else {
        try unsafe read(part[index], at: offset + index)
        index += 1
      }
    }
  }

  private mutating func read(_ byte: UInt8, at place: Int) throws {
    switch byte {
    case UInt8(ascii: "\""): beginLiteral(at: place)
    case UInt8(ascii: "{"), UInt8(ascii: "["): try open(isObject: byte == UInt8(ascii: "{"), at: place)
    case UInt8(ascii: "}"), UInt8(ascii: "]"): try close(byte, at: place)
    case UInt8(ascii: "\n"):
      if layout == .unknown { layout = containers.isEmpty ? .lines : .document }
      if layout == .lines, !containers.isEmpty {
        try fail(at: place, "the line breaks off")
        skipsLine = false
      }
      append(UInt8(ascii: " "))
    case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"): append(UInt8(ascii: " "))
    case UInt8(ascii: ","):
      expectsKey = containers.last?.isObject == true
      append(byte)
    default:
      guard containers.isEmpty else { return append(byte) }
      // A byte order mark is at the start, and in the middle where files were joined.
      if !JSONParser.byteOrderMark.contains(byte) { try fail(at: place, "not JSON") }
    }
  }

  // MARK: - Containers

  private mutating func open(isObject: Bool, at place: Int) throws {
    guard containers.count < Self.depthLimit else {
      return try fail(at: place, "nested more than \(Self.depthLimit) deep")
    }
    let container = Container(isObject: isObject)
    switch containers.last {
    case _ where omittedDepth != nil: containers.append(container)
    case nil where !isObject:
      name = []
      containers.append(Container(isObject: false, isList: true))
    // The lists of several windows.
    case let list? where list.isList && list.isObject && !isObject:
      containers.append(Container(isObject: false, isList: true))
    case nil: begin(isObject, at: place)
    case let list? where list.isList: begin(isObject, at: place)
    case let parent?: openInside(parent, container, at: place)
    }
    expectsKey = isObject
  }

  private mutating func openInside(_ parent: Container, _ container: Container, at place: Int) {
    let depth = containers.count - skeletons[skeletons.count - 1].depth
    let key = parent.isObject && depth <= Self.listDepth && skeletons.count == 1 ? skeletons[0].key : []
    let found = EventList(key: key)
    switch found {
    case .snapshots? where !container.isObject, .snapshotData? where !container.isObject,
      .data? where !container.isObject && containers.count == 1,
      .history? where !container.isObject && containers.count == 1,
      .snapshotsByWindowId? where container.isObject:
      enter(found)
      containers.append(Container(isObject: container.isObject, isList: true))
    case .snapshotData?:
      enter(found)
      begin(true, at: place)
    case _ where depth >= Self.skeletonDepth:
      skeletons[skeletons.count - 1].append("null")
      omittedDepth = containers.count
      containers.append(container)
    default:
      append(UInt8(ascii: container.isObject ? "{" : "["))
      containers.append(container)
    }
  }

  private mutating func enter(_ list: EventList?) {
    if let list { self.list = list }
    name = []
    skeletons[0].append("null")
  }

  /// Begins a record, or an event in it.
  private mutating func begin(_ isObject: Bool, at place: Int) {
    skeletons.append(SkeletonWriter(start: place, depth: containers.count, window: name, limit: limit))
    containers.append(Container(isObject: isObject, isWhole: true))
    append(UInt8(ascii: isObject ? "{" : "["))
  }

  private mutating func close(_ byte: UInt8, at place: Int) throws {
    guard let container = containers.last, container.isObject == (byte == UInt8(ascii: "}")) else {
      return try fail(at: place, "a bracket that closes nothing")
    }
    append(byte)
    containers.removeLast()
    expectsKey = false
    if containers.count == omittedDepth { omittedDepth = nil }
    guard container.isWhole, let writer = skeletons.popLast() else { return }
    let skeleton = writer.finished(end: place + 1)
    if try !take(skeletons.isEmpty ? .record(skeleton) : .event(skeleton, isOfSession: list != .snapshotData)) {
      isFinished = true
    }
  }

  // MARK: - Strings

  private mutating func beginLiteral(at place: Int) {
    literal = OpenLiteral(start: place, isKey: expectsKey)
    if containers.last?.isList == true { name = [UInt8(ascii: "\"")] }
    if isWriting { skeletons[skeletons.count - 1].beginLiteral(isKey: expectsKey) }
    expectsKey = false
  }

  /// Reads a string, or the part of it that is in memory.
  private mutating func readLiteral(_ part: UnsafeBufferPointer<UInt8>, _ index: inout Int) throws {
    guard var current = literal else { return }
    var end: Int?
    var from = index
    while let quote = unsafe part.find("\"", in: from..<part.count) {
      if unsafe !current.escapes(part, from..<quote) {
        end = quote
        break
      }
      current.isEscaped = false
      from = quote + 1
    }
    let stop = end ?? part.count
    if let lineEnd = unsafe part.find("\n", in: index..<stop) {
      index = lineEnd
      return try fail(at: offset + lineEnd, "a text breaks off")
    }
    let bytes = unsafe UnsafeBufferPointer(rebasing: part[index..<stop])
    if isWriting { unsafe skeletons[skeletons.count - 1].appendLiteral(bytes) }
    if containers.last?.isList == true, name.count <= SkeletonWriter.textBytes { unsafe name += bytes }
    if end == nil {
      current.isEscaped = unsafe current.escapes(part, from..<stop)
      literal = current
      index = stop
      return
    }
    literal = nil
    index = stop + 1
    let range = current.start..<offset + index
    if isWriting { skeletons[skeletons.count - 1].endLiteral(range, isKey: current.isKey) }
    if containers.last?.isList == true {
      name = range.count <= SkeletonWriter.textBytes ? name + [UInt8(ascii: "\"")] : []
    }
    if containers.isEmpty { try fail(at: current.start, "a text outside of a record") }
  }

  // MARK: - Skeletons

  /// Whether the next bytes belong to the last skeleton.
  private var isWriting: Bool { omittedDepth == nil && containers.last?.isList == false }

  private mutating func append(_ byte: UInt8) {
    if isWriting { skeletons[skeletons.count - 1].append(byte) }
  }

  /// Abandons a record, and everything after it in the same line.
  private mutating func fail(at place: Int, _ reason: String) throws {
    containers = []
    skeletons = []
    (omittedDepth, literal, expectsKey) = (nil, nil, false)
    skipsLine = true
    if try !take(.broken(offset: place, reason: reason)) || layout == .document { isFinished = true }
  }
}
