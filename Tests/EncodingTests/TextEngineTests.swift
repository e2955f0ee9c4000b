import CLinux
import FileSystem
import Foundation
import FrameBatches
import TestSupport
import Testing

@testable import Encoding

/// A program as a process of its own, with few rights.
@Suite struct ConfinedProgramTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private static let limits = ConfinedProgram.Limits(
    memoryBytes: 1 << 30, cpuSeconds: 30, wallSeconds: 300, outputBytes: 1 << 20)

  private func program(
    _ path: String, _ confinement: ConfinedProgram.Confinement, readable: [String] = []
  ) -> ConfinedProgram {
    ConfinedProgram(
      path: DurableFile.resolved(path), readable: readable, environment: ["LC_ALL=C"], confinement: confinement)
  }

  private func run(
    _ path: String, _ arguments: [String], _ confinement: ConfinedProgram.Confinement = ConfinedProgram.confinement,
    input: [UInt8] = [], readable: [String] = [], limits: ConfinedProgram.Limits = limits
  ) throws -> (end: ProgramEnd, text: String) {
    let answer = try program(path, confinement, readable: readable)
      .run(arguments, input: input, limits: limits, cancellation: .never)
    return (answer.end, String(decoding: answer.output, as: UTF8.self))
  }

  @Test(arguments: [ConfinedProgram.Confinement.none, ConfinedProgram.confinement])
  func inputAndOutputGoThroughASocket(_ confinement: ConfinedProgram.Confinement) throws {
    let input = (0..<500_000).map { UInt8(ascii: "a") + UInt8($0 % 26) }
    let answer = try run("/bin/cat", [], confinement, input: input)
    #expect(answer.end == .exited(0) && Array(answer.text.utf8) == input)
  }

  @Test(.enabled(if: ConfinedProgram.confinement == .full, "this kernel has no Landlock"))
  func filesThatAreNotNamedAreNotRead() throws {
    let file = try scratch.file("secret", Array("secret".utf8))
    #expect(try run("/bin/cat", [file], .none).text == "secret")
    let refused = try run("/bin/cat", [file])
    #expect(refused.end == .exited(1) && refused.text == "")
    #expect(try run("/bin/cat", [file], readable: [file]).text == "secret")
  }

  @Test(.enabled(if: ConfinedProgram.confinement != .none, "this kernel has no system call filters"))
  func nothingIsWrittenAndNoProcessIsStarted() throws {
    let target = scratch.path("written")
    // Without Landlock, too: the filter alone refuses it.
    for confinement in [ConfinedProgram.Confinement.filtered, ConfinedProgram.confinement] {
      #expect(try run("/bin/dd", ["if=/dev/null", "of=" + target], confinement).end != .exited(0))
      #expect(!DurableFile.exists(target))
      let shell = try run("/bin/sh", ["-c", "echo a; (echo b); echo c"], confinement)
      #expect(!shell.text.contains("b"), "\(shell)")
    }
    #expect(try run("/bin/dd", ["if=/dev/null", "of=" + target], .none).end == .exited(0))
  }

  @Test func programIsEndedAtItsLimits() throws {
    let slow = ConfinedProgram.Limits(memoryBytes: 1 << 30, cpuSeconds: 30, wallSeconds: 1, outputBytes: 1 << 20)
    #expect(try run("/bin/sleep", ["1000"], .none, limits: slow).end == .late)
    #expect(try run("/usr/bin/yes", [], .none).end == .excessive)
    let busy = ConfinedProgram.Limits(memoryBytes: 1 << 30, cpuSeconds: 1, wallSeconds: 300, outputBytes: 1 << 20)
    #expect(try run("/bin/sh", ["-c", "while :; do :; done"], .none, limits: busy).end == .signal(SIGXCPU))
    #expect(throws: Cancelled.self) {
      try program("/bin/sleep", .none).run(
        ["1000"], input: [], limits: Self.limits, cancellation: Cancellation.never.or(afterMs: 200))
    }
  }

  @Test func programThatClosesItsSideIsEndedAtItsLimits() throws {
    let silent = ["-c", "exec <&- >&-; exec sleep 1000"]
    let short = ConfinedProgram.Limits(memoryBytes: 1 << 30, cpuSeconds: 30, wallSeconds: 1, outputBytes: 1 << 20)
    #expect(try run("/bin/sh", silent, .none, limits: short).end == .late)
    #expect(throws: Cancelled.self) {
      try program("/bin/sh", .none).run(
        silent, input: [], limits: Self.limits, cancellation: Cancellation.never.or(afterMs: 200))
    }
  }

  /// A service manager and a terminal signal all processes: the program must not end before it is told to.
  @Test func programOutlivesAStopOfItsGroup() throws {
    let script = "for signal in HUP INT QUIT TERM; do kill -$signal $$; done; echo alive"
    let answer = try run("/bin/sh", ["-c", script], .none)
    #expect(answer.end == .exited(0) && answer.text == "alive\n")
  }

  @Test func programInheritsNoDescriptorsAndNoEnvironment() throws {
    let file = open("/dev/null", O_RDONLY)
    defer { close(file) }
    #expect(getenv("PATH") != nil)
    // The last one is the directory that is listed.
    #expect(try run("/bin/ls", ["/proc/self/fd"], .none).text == "0\n1\n2\n3\n")
    #expect(try run("/usr/bin/env", [], .none).text == "LC_ALL=C\n")
  }

  @Test func missingProgramExitsAndAProgramThatReadsNothingDoesNotBlock() throws {
    #expect(try run("/no/such/program", []).end == .exited(127))
    let input = [UInt8](repeating: 0, count: 1 << 20)
    #expect(try run("/bin/true", [], input: input).end == .exited(0))
  }
}

/// Tesseract, where it is installed.
@Suite(.enabled(if: Tool.readsText, "tesseract is not installed: scripts/setup test"))
struct TextEngineTests {
  private func engine(_ language: String = "eng") throws -> TextEngine {
    try TextEngine(language: language, searchPath: "/usr/bin:/bin", isConfined: true, cpuSeconds: 60)
  }

  /// Draws lines of text, 80 pixels apart.
  private func picture(_ lines: [String]) -> GreyPicture {
    var drawn = DrawnText(width: 800, height: 80 * lines.count + 40)
    for (index, line) in lines.enumerated() { drawn.write(line, x: 40, y: 40 + 80 * index) }
    return GreyPicture(width: drawn.width, height: drawn.height, samples: drawn.samples)
  }

  @Test func wordsAreReadWhereTheyAre() throws {
    let picture = picture(["Hello world", "Second line"])
    let found = try #require(
      try engine().words(
        in: picture, TextRegions.whole(PixelSize(width: 800, height: 200)), cancellation: .never))
    #expect(found.map(\.text).sorted() == ["Hello", "Second", "line", "world"])
    let world = try #require(found.first { $0.text == "world" })
    let left = 40 + 6 * DrawnText.advance
    #expect((left - 4...left + 4).contains(world.box.x) && (36...44).contains(world.box.y) && world.confidence > 50)
  }

  @Test func regionsAreReadAloneInOneProcess() throws {
    let picture = picture(["Hello world", "Second line", "Third place"])
    let found = try #require(
      try engine().words(
        in: picture,
        [PictureRegion(x: 0, y: 20, width: 800, height: 80), PictureRegion(x: 0, y: 181, width: 800, height: 79)],
        cancellation: .never))
    #expect(found.map(\.text).sorted() == ["Hello", "Third", "place", "world"])
    #expect(found.first { $0.text == "Third" }.map { (196...204).contains($0.box.y) } == true)
  }

  @Test func tinyAndLargePicturesAreNoFailure() throws {
    let engine = try engine()
    for (width, height) in [(1, 1), (2, 300), (16, 16), (4_000, 2_000)] {
      let blank = GreyPicture(width: width, height: height, samples: [UInt8](repeating: 200, count: width * height))
      let regions = TextRegions.whole(PixelSize(width: width, height: height))
      #expect(try engine.words(in: blank, regions, cancellation: .never) != nil, "\(width)×\(height)")
    }
  }

  @Test func versionIsKnown() throws { #expect(try engine().version.hasPrefix("tesseract ")) }

  @Test func unknownLanguageIsNamedWithItsPackage() throws {
    let error = #expect(throws: Failure.self) { try engine("xyz") }
    #expect(error?.description.contains("tesseract-ocr-xyz") == true)
  }

  @Test(arguments: ["", "../eng", "eng+", "-l", "eng/../deu", "e ng", String(repeating: "a", count: 65)])
  func languageIsNoPath(_ language: String) {
    let error = #expect(throws: Failure.self) { try engine(language) }
    #expect(error?.description.contains("no language") == true)
  }
}

/// Tesseract where it is not, or where another program has its name.
@Suite struct MissingTextEngineTests {
  @Test func missingProgramIsNamedWithItsPackage() throws {
    let scratch = try ScratchDirectory()
    func error(_ path: String) -> Failure? {
      #expect(throws: Failure.self) {
        try TextEngine(language: "eng", searchPath: path, isConfined: true, cpuSeconds: 60)
      }
    }
    for path in ["", ":", scratch.path, "relative"] {
      #expect(error(path)?.description.contains("install the package tesseract-ocr") == true)
    }
    symlink("/bin/true", scratch.path("tesseract"))
    #expect(error(scratch.path)?.description.contains("is no tesseract") == true)
  }
}
