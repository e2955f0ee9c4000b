import Foundation
import TestSupport
import Testing

@testable import Collecting
@testable import FileSystem

@Suite struct FolderWatchTests {
  private let scratch: ScratchDirectory
  private let top: String

  init() throws {
    scratch = try ScratchDirectory()
    top = try scratch.directory("top")
  }

  @Test func eventsOfFilesAndFoldersAreCounted() throws {
    _ = try scratch.directory("top/kiosk")
    let watch = try FolderWatch(top, isRecursive: true)
    #expect(watch.watch("") && watch.watch("kiosk") && watch.watch("kiosk"))
    #expect(!watch.watch("none"))
    // The kernel makes one event of two equal ones in a row: no two closes are.
    for name in ["kiosk/a.jpg", "kiosk/a.jpg", "c.jpg", "kiosk/b.jpg.part"] {
      try Data([1]).write(to: URL(fileURLWithPath: top + "/" + name))
    }
    rename(top + "/kiosk/b.jpg.part", top + "/kiosk/b.jpg")
    _ = try scratch.directory("top/new")
    var changes = watch.wait(ms: 1_000)
    #expect(
      changes.files == [
        "": ["c.jpg": FileChanges(closed: 1)],
        "kiosk": ["a.jpg": FileChanges(closed: 2), "b.jpg": FileChanges(moved: 1)],
      ])
    #expect(changes.folders == [""])
    // Not a folder any more: events of a folder that moved away would have the wrong path.
    rename(top + "/kiosk", scratch.path("away"))
    changes = watch.wait(ms: 1_000)
    #expect(changes.folders == ["", "kiosk"])
    watch.forget("kiosk")
    try scratch.file("away/d.jpg", [1])
    changes = watch.wait(ms: 100)
    #expect(changes.files.isEmpty)
  }

  @Test func waitEndsByAnotherThread() throws {
    let watch = try FolderWatch(top, isRecursive: false)
    let wake = watch.wake
    let thread = Thread { wake() }
    thread.start()
    // A hang fails the test run.
    #expect(watch.wait(ms: 600_000).isEmpty)
  }

  @Test func eventsAreReadInAnyPieces() {
    func event(_ folder: UInt8, _ name: String, length: Int) -> [UInt8] {
      [folder, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, UInt8(length), 0, 0, 0] + Array(name.utf8)
        + [UInt8](repeating: 0, count: length - name.utf8.count)
    }
    let bytes = event(1, "a.jpg", length: 16) + event(2, "", length: 0) + event(3, "b.png", length: 16)
    let events = FolderEvent.all(in: bytes[...])
    #expect(events.map(\.folder) == [1, 2, 3] && events.map(\.name) == ["a.jpg", nil, "b.png"])
    #expect(events.allSatisfy { $0.has(0x80) && !$0.isOfFolder })
    for start in 0..<bytes.count { #expect(FolderEvent.all(in: bytes[start...].dropLast(2)).count <= 4) }
  }

  @Test func changesAddUpUntilAFolderHasTooManyNames() {
    var changes = FolderChanges(files: ["": ["a": FileChanges(closed: 1)]])
    changes.append(
      FolderChanges(files: ["": ["a": FileChanges(closed: 1, moved: 2)], "k": ["b": FileChanges(moved: 1)]]))
    #expect(changes.files == ["": ["a": FileChanges(closed: 2, moved: 2)], "k": ["b": FileChanges(moved: 1)]])
    let many = Dictionary(uniqueKeysWithValues: (0..<10_001).map { ("\($0)", FileChanges(moved: 1)) })
    changes.append(FolderChanges(files: ["": many]))
    #expect(changes.files.keys.sorted() == ["k"] && changes.areIncomplete)
  }
}
