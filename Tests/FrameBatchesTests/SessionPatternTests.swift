import Foundation
import TestSupport
import Testing

@testable import FrameBatches

/// Sessions in the names of batches: `--session-from`.
@Suite struct SessionPatternTests {
  @Test(arguments: [
    ("{session}-{part}", "s01-0", "s01"), ("{session}-{part}", "s01-000123", "s01"),
    ("{session}-{part}", "front-door-7", "front-door"), ("{session}-{part}", "a-1-2", "a-1"),
    ("{session}-{part}", "s01-a", nil), ("{session}-{part}", "s01", nil), ("{session}-{part}", "-1", nil),
    ("{session}-{part}", "s01-1 ", nil), ("{session}-{part}", "s01-", nil), ("{session}_part{part}", "x_part03", "x"),
    // A number is never split.
    ("{session}{part}", "cam12", "cam"), ("{session}{part}", "cam", nil), ("{part}{session}", "12cam", "cam"),
    ("{session}-*", "KIOSK7-2026-11-25", "KIOSK7-2026-11"), ("{session}-*", "s01-", "s01"),
    ("{session}-{part}-{part}-{part}", "KIOSK7-2026-11-25", "KIOSK7"), ("kiosk *-{session}", "kiosk 7-ab", "ab"),
    ("{session}", "all of it", "all of it"), ("ü{session}", "üx", "x"),
    // Folders.
    ("{session}/{part}", "s01/0", "s01"), ("{session}/{part}", "in/s01/0", "s01"), ("{session}/{part}", "0", nil),
    ("{session}/*", "KIOSK7/2026-11-25", "KIOSK7"), ("{session}/*/{part}", "x/KIOSK7/2026-11-25/12", "KIOSK7"),
    ("{session}-*/{part}", "a/b-c/1", "b"), ("{session}-{part}", "folder-9/s01-2", "s01"),
  ])
  func patternReadsTheWholeName(pattern: String, name: String, session: String?) throws {
    #expect(try SessionPattern(pattern).session(in: name) == session)
  }

  @Test(arguments: [
    ("", "has no {session}"), ("s01-{part}", "has no {session}"), ("%g-%q", "has no {session}"),
    ("{session}-{session}", "{session} twice"), ("{Session}-1", "'{Session}' is no field"),
    ("{session}-{n}", "'{n}' is no field"), ("{session}-{part", "'{part' is no field"),
    ("{session}}", "'}' is no field"), ("{session}*", "beside each other"), ("*{session}", "beside each other"),
    ("{session}-{part}{part}", "beside each other"),
    ("{session}-**", "beside each other"), ("/{session}", "a folder without a name"),
    ("{session}/", "a folder without a name"), ("{session}//*", "a folder without a name"),
    ("{session}" + String(repeating: "-*", count: 9), "is too long"),
    ("{session}" + String(repeating: "x", count: 255), "is too long"),
  ])
  func faultNamesTheCauseAndAnExample(pattern: String, cause: String) throws {
    let fault = try #require(throws: SessionPattern.Fault.self) { try SessionPattern(pattern) }
    #expect(fault.description.contains(cause), "\(fault)")
    let example = try #require(try Regex("such as '([^']*)'").firstMatch(in: fault.description)?[1].substring)
    #expect(throws: Never.self) { try SessionPattern(String(example)) }
  }

  /// Names that are put together from a session and parts give that session back, and others are never read.
  @Test func sessionOfARandomNameIsFound() throws {
    var random = Random(seed: 45)
    let letters = Array("abcXYZ._-09")
    func text(_ lengths: ClosedRange<Int64>, of letters: [Character]) -> String {
      String((0..<random.int(lengths)).compactMap { _ in letters.randomElement(using: &random) })
    }
    for _ in 0..<2_000 {
      let session = text(1...12, of: letters)
      let part = text(1...6, of: Array("0123456789"))
      let (before, between, behind) = (
        text(0...2, of: ["k", " "]), text(1...3, of: ["-", "_", "p"]), text(0...2, of: ["~", "é"])
      )
      let name = before + session + between + part + behind
      let pattern = try SessionPattern("\(before){session}\(between){part}\(behind)")
      #expect(pattern.session(in: name) == session, "\(pattern) of \(name)")
      #expect(pattern.session(in: "any/folder/" + name) == session)
      #expect(pattern.session(in: name + "!") == nil && pattern.session(in: name + between) == nil, "\(pattern)")
      // The longest session is the one that counts.
      let open = try SessionPattern("{session}\(between)*")
      let rest = session + between + part
      let last = try #require(rest.range(of: between, options: .backwards))
      #expect(open.session(in: rest) == String(rest[..<last.lowerBound]), "\(open) of \(rest)")
    }
  }

  @Test func examplesOfTheDocumentationAreTrue() throws {
    let page = try String(contentsOf: Fixture.root.appendingPathComponent("docs/input-formats.md"), encoding: .utf8)
    let rows = page.matches(of: #/(?m)^\| `([^`]*\{session\}[^`]*)` \| `([^`]+)` \| `([^`]+)`/#)
    #expect(rows.count == 6)
    for row in rows {
      let name = OpenedBatch.stem(of: String(row.2))
      let path = name.hasSuffix("/") ? String(name.dropLast()) : name
      #expect(try SessionPattern(String(row.1)).session(in: path) == String(row.3), "\(row.0)")
    }
  }

  /// A hostile name costs no more than a search of each place.
  @Test func longNamesOfManyWildcardsEnd() throws {
    let pattern = try SessionPattern("{session}-" + String(repeating: "*a", count: 8) + "b")
    #expect(pattern.session(in: String(repeating: "-a", count: 127)) == nil)
    let folders = try SessionPattern("{session}/" + String(repeating: "*a", count: 8) + "b")
    #expect(folders.session(in: String(repeating: "a", count: 511) + "/" + String(repeating: "a", count: 511)) == nil)
    #expect(folders.session(in: String(repeating: "a", count: 4_000) + "/ab") == nil)
  }
}

/// Batches whose names have the session.
@Suite struct SessionNameTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func options(_ pattern: String) throws -> InputOptions {
    var options = InputOptions()
    options.sessionFrom = try SessionPattern(pattern)
    return options
  }

  /// Writes a plain batch, or one with a `batch.json`.
  private func batch(_ name: String, json: String? = nil) throws -> String {
    _ = try scratch.directory(name)
    try scratch.file(name + "/1767859512340.jpg", Fixture("single-frame").bytes("1767859512340.jpg"))
    if let json { try scratch.file(name + "/batch.json", Array(json.utf8)) }
    return scratch.path(name)
  }

  private func read(_ path: String, _ pattern: String, named name: String? = nil) throws -> Batch {
    try BatchSessions(reading: path, named: name, options: options(pattern)).readers[0].batch
  }

  @Test func patternReadsDirectoriesAndArchives() throws {
    let directory = try batch("s01-0")
    let archive = scratch.path("s01-1.tar.gz")
    try Tool.output("tar", ["-caf", archive, "-C", directory, "."])
    for path in [directory, directory + "/", archive] {
      let found = try read(path, "{session}-{part}")
      #expect(found.session.description == "s01" && found.warnings == [] && found.namesake == nil)
    }
    // Images that are named one by one are a batch with the name of their directory.
    let files = try BatchSessions(
      reading: directory, files: [directory + "/1767859512340.jpg"], options: options("{session}-{part}"))
    #expect(files.readers[0].batch.session.description == "s01")
  }

  @Test func sessionInABatchOverridesThePattern() throws {
    let path = try batch("s01-0", json: #"{"version": 1, "session": "own"}"#)
    for pattern in ["{session}-{part}", "{session}_{part}"] {
      let found = try read(path, pattern)
      #expect(found.session.description == "own" && found.warnings == [])
    }
    // So does `--session`.
    var options = try options("{session}-{part}")
    options.session = "said"
    #expect(try BatchSessions(reading: batch("s01-1"), options: options).readers[0].batch.session.description == "said")
    // A recorder that writes its session into names has a form of its own.
    let sentry = "replay_0123456789abcdef0123456789abcdef"
    #expect(try read(batch(sentry), "{session}_*").session.description == String(sentry.dropFirst(7)))
  }

  @Test func nameThatDoesNotFitIsTheSessionWithAWarning() throws {
    let found = try read(batch("s01-a"), "{session}-{part}")
    #expect(found.session.description == "s01-a")
    #expect(
      found.warnings == [
        "the name s01-a does not fit --session-from '{session}-{part}', so its session is s01-a, as without the option"
      ])
  }

  /// Producers that write an `@`, as `enqueue` does, have said the session.
  @Test func nameWithAnAtSignIsLeftAloneUnlessThePatternHasOne() throws {
    let path = try batch("host-7@1767859512340")
    let own = try read(path, "{session}-{part}")
    #expect(own.session.description == "host-7" && own.warnings == [])
    #expect(try read(path, "{session}-{part}@*").session.description == "host")
    #expect(try read(path, "*@{session}").session.description == "1767859512340")
    #expect(try read(path, "{session}-x@*").warnings.count == 1)
  }

  @Test func sessionThatCannotBeUsedIsRefusedWithNamePatternAndID() throws {
    let read = try #require(throws: BadBatch.self) { try self.read(batch("a b-1"), "{session}-{part}") }
    #expect(
      read.cause
        == "--session-from '{session}-{part}' reads the session id \"a b\" in the name \"a b-1\", and it cannot be used"
    )
    #expect(read.advice.hasSuffix(SessionID.rule))
    let other = try #require(throws: BadBatch.self) { try self.read(batch("a b"), "{session}-{part}") }
    #expect(other.cause.contains("'{session}-{part}'") && other.cause.contains("\"a b\" cannot be used"))
  }

  @Test func foldersComeFromThePathOrFromTheNameThatAProducerGave() throws {
    let path = try batch("KIOSK7/2026-11-25")
    #expect(try read(path, "{session}/*").session.description == "KIOSK7")
    // Where the path has too few folders, the file system tells them.
    #expect(try read(path + "/../2026-11-25/.", "{session}/*").session.description == "KIOSK7")
    // A worker gives the name, and where it keeps the batch does not matter.
    #expect(try read(path, "{session}-{part}", named: "s01-3").session.description == "s01")
    #expect(try read(path, "{session}/{part}", named: "lobby/3").session.description == "lobby")
    let bare = try read(path, "{session}/*", named: "day")
    #expect(bare.session.description == "day" && bare.warnings.count == 1)
  }

  /// `--name-time` reads folders inside of a batch.
  @Test func foldersInsideOfABatchTellTheSessionByAPatternOfFileNames() throws {
    for kiosk in ["KIOSK7", "KIOSK8"] {
      _ = try scratch.directory("upload-1/\(kiosk)/2026-11-25")
      let picture = try Fixture("single-frame").bytes("1767859512340.jpg")
      try scratch.file("upload-1/\(kiosk)/2026-11-25/1767859512340.jpg", picture)
    }
    var options = try options("{session}-{part}")
    try options.setTimes(nameTime: "%g/%*/%Q", times: nil, start: nil, fps: nil, timeZone: nil)
    let found = try BatchSessions(reading: scratch.path("upload-1"), options: options).readers.map(\.batch)
    #expect(found.map(\.session.description) == ["KIOSK7", "KIOSK8"] && found.allSatisfy { $0.warnings == [] })
  }

  @Test func severalSessionsHaveTheirKeysBehindTheSession() throws {
    _ = try scratch.directory("desk-4")
    for screen in ["1", "2"] {
      try scratch.file("desk-4/1767859512340_m\(screen).jpg", Fixture("single-frame").bytes("1767859512340.jpg"))
    }
    let path = scratch.path("desk-4")
    let found = try BatchSessions(reading: path, options: options("{session}-{part}")).readers.map(\.batch)
    #expect(found.map(\.session.description) == ["desk.m1", "desk.m2"])
    // One warning a batch, not a session.
    let others = try BatchSessions(reading: path, options: options("{session}_{part}")).readers.map(\.batch)
    #expect(others.map(\.session.description) == ["desk-4.m1", "desk-4.m2"])
    #expect(others.flatMap(\.warnings).count == 1)
  }

  @Test func nameTellsTheSessionOfABatchThatCannotBeRead() throws {
    let path = try scratch.file("s01-9.tar", [1, 2, 3])
    let found = try NamedSessions.of(
      path, named: "s01-9.tar", options: options("{session}-{part}"), unpacker: nil, cancellation: .never)
    #expect(found.sessions.map(\.description) == ["s01"] && !found.isCertain)
    #expect(try options("{session}-{part}").session(ofBatchNamed: "in/s01-9.tar.gz")?.description == "s01")
    #expect(InputOptions().session(ofBatchNamed: "in/s01-9.tar.gz")?.description == "s01-9")
  }

  @Test func folderNameTellsItsSession() throws {
    let path = try batch("KIOSK7-cam")
    #expect(try options("{session}-cam").session(ofFolder: path).id?.description == "KIOSK7")
    #expect(try InputOptions().session(ofFolder: path) == (nil, nil))
    let other = try options("{session}-{part}").session(ofFolder: path)
    #expect(other.id == nil && other.warning?.contains("KIOSK7-cam does not fit") == true)
    #expect(throws: BadBatch.self) { try options("{session}-cam").session(ofFolder: batch("a b-cam")) }
  }
}
