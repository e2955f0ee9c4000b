// Reads words with tesseract (Debian: tesseract-ocr), a process a picture. Pictures and words go through a socket; no file is written.

import FileSystem
import FrameBatches
import Glibc

package struct TextEngine: Sendable {
  /// The name and version of the program: `tesseract 5.3.0`.
  package let version: String
  /// As tesseract takes it: `eng`, `deu+eng`.
  package let language: String
  private let program: ConfinedProgram
  private let limits: Seconds

  /// The directories of the languages on Debian and its relatives.
  private static let data = ["/usr/share/tesseract-ocr", "/usr/share/tessdata", "/usr/local/share/tessdata"]
  /// C.UTF-8 in glibc before 2.35 is a file.
  private static let locales = ["/usr/lib/locale"]

  /// CPU seconds for a picture; it may wait for the CPU for ten times as long.
  private struct Seconds { let cpu: Int }

  /// Finds tesseract, and tries it on a blank picture.
  ///
  /// - Parameters:
  ///   - searchPath: the directories to search, separated by colons: PATH.
  ///   - isConfined: whether the sandbox is on.
  ///   - cpuSeconds: the maximum for a picture.
  /// - Throws: ``Failure``; ``DiskError`` if no process can be started.
  package init(language: String, searchPath: String, isConfined: Bool, cpuSeconds: Int) throws {
    guard Self.isLanguage(language) else {
      throw Failure(.usage, "'\(language)' is no language of tesseract, such as eng or deu+eng")
    }
    let found = searchPath.split(separator: ":").map { String($0) + "/tesseract" }.first { path in
      unsafe path.hasPrefix("/") && access(path, X_OK) == 0
    }
    guard let found else {
      throw Failure(
        .usage, "no program 'tesseract' in PATH; install the package tesseract-ocr, or leave text out")
    }
    program = ConfinedProgram(
      path: DurableFile.resolved(found), readable: Self.data + Self.locales,
      environment: ["OMP_THREAD_LIMIT=1", "LC_ALL=C.UTF-8"],
      confinement: isConfined ? ConfinedProgram.confinement : .none)
    self.language = language
    limits = Seconds(cpu: cpuSeconds)
    let answer = try program.run(
      ["--version"], input: [], limits: Self.limits(limits, pixels: 0), cancellation: .never)
    let line = String(decoding: answer.output.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    guard answer.end == .exited(0), line.hasPrefix("tesseract "), line.utf8.count <= 64 else {
      throw Failure(
        .usage, "\(found) does not run, or is no tesseract; install the package tesseract-ocr again")
    }
    version = line
    guard try isWorking(.never) else {
      throw Failure(
        .usage,
        "\(found) cannot read '\(language)'; install the package of each language: "
          + language.split(separator: "+").map { "tesseract-ocr-\($0.replacing("_", with: "-"))" }
          .joined(separator: ", "))
    }
  }

  /// How much the kernel confines tesseract: a text for the operator where that is less than all; nil for all.
  package var weakness: String? {
    switch program.confinement {
    case .full: nil
    case .filtered:
      "this kernel has no Landlock: tesseract writes no files and has no network, but can read files of this user"
    case .none: "tesseract runs with limits of memory and time, but not confined"
    }
  }

  /// Whether a text can be a language: its name is a part of a path.
  private static func isLanguage(_ text: String) -> Bool {
    text.utf8.count <= 64
      && text.split(separator: "+", omittingEmptySubsequences: false).allSatisfy { name in
        name.first.map { $0.isASCII && $0.isLetter } == true
          && name.utf8.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
              UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
              true
            default: false
            }
          }
      }
  }

  /// Returns the words in regions of a picture, in the picture's pixels; nil if tesseract fails on this picture only.
  ///
  /// - Throws: ``Failure`` if it fails on every picture; ``Cancelled``; ``DiskError``.
  package func words(
    in picture: GreyPicture, _ regions: [PictureRegion], cancellation: Cancellation
  ) throws -> [FoundWord]? {
    guard !regions.isEmpty else { return [] }
    if let words = try read(picture, regions, cancellation) { return words }
    // The picture is to blame only if tesseract reads another one.
    guard try isWorking(cancellation) else {
      throw Failure(.environment, "\(program.path) does not work any more; is the machine out of memory?")
    }
    return nil
  }

  private func isWorking(_ cancellation: Cancellation) throws -> Bool {
    let blank = GreyPicture(width: 64, height: 64, samples: [UInt8](repeating: 255, count: 64 * 64))
    return try read(blank, TextRegions.whole(PixelSize(width: 64, height: 64)), cancellation) != nil
  }

  private func read(
    _ picture: GreyPicture, _ regions: [PictureRegion], _ cancellation: Cancellation
  ) throws -> [FoundWord]? {
    // Words anywhere, in no order (11).
    let arguments = ["-", "-", "-l", language, "--psm", "11", "-c", "tessedit_create_tsv=1"]
    let pixels = regions.reduce(0) { $0 + $1.width * $1.height }
    let answer = try program.run(
      arguments, input: TextPages.tiff(of: picture, regions), limits: Self.limits(limits, pixels: pixels),
      cancellation: cancellation)
    guard answer.end == .exited(0) else { return nil }
    return try? TextTable.words(in: answer.output, of: regions)
  }

  private static func limits(_ seconds: Seconds, pixels: Int) -> ConfinedProgram.Limits {
    ConfinedProgram.Limits(
      memoryBytes: (1 << 30) + 32 * pixels, cpuSeconds: seconds.cpu, wallSeconds: 10 * seconds.cpu,
      outputBytes: TextTable.maximumBytes)
  }
}
