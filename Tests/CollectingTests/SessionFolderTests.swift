import Testing

@testable import Collecting
@testable import FrameBatches

@Suite struct SessionFolderTests {
  @Test(arguments: [
    ("", ""), ("kiosk-07", "kiosk-07"), ("floor1/kiosk-07", "floor1.kiosk-07"),
    ("kiosk-07/2026-11-25", "kiosk-07"), ("kiosk-07/20261125", "kiosk-07"), ("kiosk-07/2026/11/25", "kiosk-07"),
    ("kiosk-07/2026_11_25", "kiosk-07"), ("kiosk-07/2026/11/25/08/05", "kiosk-07"), ("2026-11-25", ""),
    ("2026-11-25/kiosk-07", "kiosk-07"), ("2026/11/25/kiosk-07", "kiosk-07"), ("2026-11-25/08", ""),
    ("kiosk-07/2026-11-25/left", "kiosk-07.left"),
    // No dates.
    ("kiosk-07/2026", "kiosk-07.2026"), ("kiosk-07/2026/11", "kiosk-07.2026.11"),
    ("kiosk-07/2026-13-25", "kiosk-07.2026-13-25"),
    ("kiosk-07/20260230", "kiosk-07.20260230"), ("kiosk-07/1999-11-25", "kiosk-07.1999-11-25"),
    ("12345678", "12345678"),
    ("kiosk-07/08", "kiosk-07.08"), ("07", "07"), ("2026-11-25b", "2026-11-25b"), ("2026/11-25/x", "2026.11-25.x"),
  ])
  func foldersOfDatesBelongToTheFolderAbove(path: String, session: String) {
    #expect(SessionFolder(of: path).session(below: nil) == session)
  }

  @Test func namedTopIsTheBeginningOfTheNamesBelow() {
    #expect(SessionFolder(of: "kiosk-07").session(below: "hall") == "hall.kiosk-07")
    #expect(SessionFolder(of: "2026-11-25").session(below: "hall") == "hall")
  }
}
