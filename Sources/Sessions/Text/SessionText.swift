// The words in a session's pictures: a file for each segment. A crash leaves segments without one, and the next call completes them.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON

/// The result of reading a session's pictures.
package struct SessionTextReport: Sendable, Equatable {
  package let session: String
  package internal(set) var segments = 0
  /// The segments whose words are new.
  package internal(set) var written = 0
  /// The pictures that were read for them, and their words.
  package internal(set) var pictures = 0
  package internal(set) var words = 0
  /// Pictures that could not be read, and segments that are damaged.
  package internal(set) var warnings: [Problem] = []
  package internal(set) var problems: [Problem] = []

  init(session: String) { self.session = session }

  /// One line of JSON.
  package var json: String {
    JSONValue.object([
      "session": .string(session), "segments": .number(segments), "written": .number(written),
      "pictures": .number(pictures), "words": .number(words), "warnings": .array(warnings.map(\.json)),
      "problems": .array(problems.map(\.json)),
    ]).line
  }
}

package struct SessionText {
  /// Milliseconds to wait for a worker that publishes in the session. A stopped process holds the lock for ever.
  private static let lockMs = 30_000

  private let engine: TextEngine
  private let directory: SessionDirectory
  private let cancellation: Cancellation
  private let reading: SegmentTextReading

  package init(_ engine: TextEngine, of directory: SessionDirectory, cancellation: Cancellation) {
    (self.engine, self.directory, self.cancellation) = (engine, directory, cancellation)
    reading = SegmentTextReading(engine, of: directory, cancellation)
  }

  /// Which segments are read.
  package enum Choice: Sendable {
    /// Those without a file.
    case missing
    /// Those without a valid file.
    case invalid
    case all
  }

  /// Reads segments and writes their files. A damaged segment does not stop the others.
  ///
  /// - Parameter progress: called with the number of segments done and of all; an error that it throws ends the work.
  /// - Throws: ``Failure``, ``SessionHeld``, ``DiskError``, ``Cancelled``. All that was written before stays.
  package func write(_ choice: Choice, progress: (Int, Int) throws -> Void) throws -> SessionTextReport {
    var report = SessionTextReport(session: directory.session.description)
    let starts = try directory.publishedStarts()
    let known = try choice == .missing ? Set(directory.textStarts()) : []
    report.segments = starts.count
    var last: (startMs: Int64, before: SegmentTextReading.Before)?
    for (index, startMs) in starts.enumerated() where !known.contains(startMs) {
      try progress(index, starts.count)
      do {
        let segment = try directory.soundManifest(startMs).segment
        let existing = try choice == .all ? nil : directory.text(of: segment)
        if let existing {
          last = (startMs, .init(segment: segment, text: existing))
          continue
        }
        var before: SegmentTextReading.Before?
        if index > 0 {
          before = last?.startMs == starts[index - 1] ? last?.before : directory.before(starts[index - 1])
        }
        let text = try reading.text(of: segment, after: before)
        try write(text, &report)
        last = (startMs, .init(segment: segment, text: text))
      } catch let error where error is BadSession || error is DamagedOutput {
        // It may have been removed meanwhile.
        if try directory.isPublished(startMs) {
          report.problems.append(Problem(file: SegmentName.manifest(startMs), what: "\(error)"))
        }
      }
    }
    try progress(starts.count, starts.count)
    return report
  }

  /// Writes a file, unless its segment is gone or another one meanwhile.
  private func write(_ text: SegmentText, _ report: inout SessionTextReport) throws {
    let name = SegmentName.text(text.startMs)
    let bytes = text.bytes
    do {
      guard let lock = try directory.lockExisting(cancellation.or(afterMs: Self.lockMs)) else { return }
      if try directory.isPublished(text.startMs), try directory.segment(text.startMs).sha256 == text.sha256 {
        let temporary = directory.path + "/" + SegmentText.temporary
        try DurableFile.replace(directory.path + "/" + name, bytes, temporary: temporary)
        try Directory(opening: directory.path, followingLinks: false).sync()
        report.written += 1
        report.pictures += text.pictures
        report.words += text.words.count
      }
      lock.release()
    } catch is Cancelled where !cancellation.isRequested {
      throw SessionHeld()
    }
    if !text.unreadMs.isEmpty {
      report.warnings.append(Problem(file: name, what: "\(count(text.unreadMs.count, "picture")) could not be read"))
    }
    if text.leftOut > 0 {
      report.warnings.append(Problem(file: name, what: "\(count(text.leftOut, "word")) left out: too many"))
    }
  }
}

extension SessionDirectory {
  /// Returns the starts of the segments with a file of words, in no order.
  package func textStarts() throws -> [Int64] {
    guard try DurableFile.isDirectory(path) else { return [] }
    return try Directory(opening: path, followingLinks: false).entries().compactMap {
      SegmentName.start(ofText: $0.name)
    }
  }

  /// Returns the words of a segment; nil if there is no file, or it is damaged or of another segment.
  func text(of segment: PublishedSegment) throws -> SegmentText? {
    let name = SegmentName.text(segment.startMs)
    guard let bytes = try bytes(of: name, limit: SegmentText.maximumBytes), let text = try? SegmentText(bytes),
      text.session == session, text.isText(of: segment)
    else { return nil }
    return text
  }

  /// Returns a segment with its words; nil if it is damaged: then the next one is read as a whole.
  fileprivate func before(_ startMs: Int64) -> SegmentTextReading.Before? {
    guard let segment = try? soundManifest(startMs).segment else { return nil }
    return .init(segment: segment, text: try? text(of: segment))
  }

  fileprivate func isPublished(_ startMs: Int64) throws -> Bool {
    try DurableFile.isThere(path + "/" + SegmentName.manifest(startMs)) && retention()?.removes(startMs) != true
  }

  /// Returns the names that belong to the words of segments.
  static func textNames(of segments: [PublishedSegment]) -> [String] {
    segments.map { SegmentName.text($0.startMs) } + [SegmentText.temporary]
  }

  /// Returns what is wrong with the files of words.
  ///
  /// - Parameter names: in the session's directory.
  func problemsOfTexts(_ names: [String], _ segments: [PublishedSegment]) throws -> [Problem] {
    let present = Set(names)
    return try segments.filter { present.contains(SegmentName.text($0.startMs)) }.compactMap { segment in
      let name = SegmentName.text(segment.startMs)
      guard let what = try problem(ofText: name, segment) else { return nil }
      return Problem(file: name, what: "\(what); encoder-worker text reads the pictures again")
    }
  }

  private func problem(ofText name: String, _ segment: PublishedSegment) throws -> String? {
    guard let bytes = try bytes(of: name, limit: SegmentText.maximumBytes) else {
      return try DurableFile.isThere(path + "/" + name) ? "not a plain file of its size" : nil
    }
    do {
      let text = try SegmentText(bytes)
      guard text.session == session, text.isText(of: segment) else { return "of another segment" }
      return nil
    } catch {
      return "\(error)"
    }
  }
}
