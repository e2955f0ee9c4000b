import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches

/// Symbolic links in folders: followed inside of a folder that the user named, and nowhere else.
@Suite struct SymbolicLinkTests {
  private let scratch: ScratchDirectory
  private let folder: String

  init() throws {
    scratch = try ScratchDirectory()
    folder = try scratch.directory("frames")
  }

  private func read(_ path: String? = nil, isNamed: Bool = true) throws -> BatchReader {
    var limits = Limits()
    limits.followsLinks = isNamed
    return try BatchReader(reading: path ?? folder, session: "s", limits: limits)
  }

  private func picture(_ path: String) throws {
    _ = try scratch.directory(DurableFile.parentDirectory(of: path))
    try scratch.file(path, BatchTests.jpeg)
  }

  private func link(_ name: String, to target: String) { symlink(target, folder + "/" + name) }

  private func isRead(_ reader: BatchReader, _ frame: Int = 0) throws -> Bool {
    guard case .bytes(let bytes) = try reader.images(of: reader.batch.frames[frame])[0] else { return false }
    return try bytes == BatchTests.jpeg
  }

  /// As git-annex lays files out: the pictures lie deeper than a folder is read.
  @Test func linksInsideOfANamedFolderAreFollowedAtTheTimesOfTheirPictures() throws {
    try picture("frames/.git/annex/objects/x1/y1/key/a")
    link("1767859512340.jpg", to: ".git/annex/objects/x1/y1/key/a")
    link("1767859513340.jpg", to: folder + "/.git/annex/objects/x1/y1/key/a")
    link("1767859514340.jpg", to: "1767859513340.jpg")
    let reader = try read()
    #expect(reader.batch.frames.count == 3 && reader.batch.refused.isEmpty, "\(reader.batch.refused)")
    #expect(try isRead(reader, 0) && isRead(reader, 1) && isRead(reader, 2))
    var status = stat()
    stat(folder + "/1767859512340.jpg", &status)
    let ownMs = WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    #expect(try reader.contents.modifiedMs("1767859512340.jpg") == ownMs)
  }

  @Test func linkToAPictureOfTheFolderIsNoSecondPicture() throws {
    try picture("frames/1767859512340.jpg")
    link("latest.jpg", to: "1767859512340.jpg")
    link("1767859513340.jpg", to: folder + "/1767859512340.jpg")
    let batch = try read().batch
    #expect(batch.frames.map(\.source) == ["1767859512340.jpg"] && batch.warnings.isEmpty)
    #expect(Set(batch.refused.map(\.reason)) == ["a symbolic link to 1767859512340.jpg, a file of the batch"])
  }

  @Test func linksThatLeadNowhereOrElsewhereAreRefusedWithTheReason() throws {
    try picture("frames/1767859512340.jpg")
    try picture("elsewhere/a.jpg")
    mkfifo(folder + "/fifo", 0o600)
    let reasons = [
      "../elsewhere/a.jpg": "that leads out of the folder",
      scratch.path("elsewhere/a.jpg"): "that leads out of the folder",
      "../elsewhere": "to a folder elsewhere", ".": "to a folder of the batch", "nothing": "to nothing",
      "1.jpg": "in a circle", "fifo": "to no regular file", "/dev/null": "to no regular file",
    ]
    for (target, reason) in reasons {
      link("1.jpg", to: target)
      let refused = try read().batch.refused.first { $0.source == "1.jpg" }
      #expect(refused?.reason == "a symbolic link \(reason)", "\(target)")
      unlink(folder + "/1.jpg")
    }
  }

  /// Another process may change a link after it was looked at.
  @Test func linkThatLeadsElsewhereByNowIsNotRead() throws {
    try picture("frames/.store/a/b/c/d/e/f/g/h/a.jpg")
    try scratch.file("secret.jpg", BatchTests.jpeg)
    for (target, name) in [("../secret.jpg", "1767859512340.jpg"), ("/dev/zero", "1767859513340.jpg")] {
      link(name, to: ".store/a/b/c/d/e/f/g/h/a.jpg")
      let reader = try read()
      unlink(folder + "/" + name)
      link(name, to: target)
      #expect(try !isRead(reader))
      unlink(folder + "/" + name)
    }
  }

  @Test func linksOfOthersAreNeverFollowed() throws {
    try picture("frames/1767859512340.jpg")
    try picture("frames/.store/a/b/c/d/e/f/g/h/a.jpg")
    try picture("frames/more/a.txt")
    link("1767859513340.jpg", to: ".store/a/b/c/d/e/f/g/h/a.jpg")
    link("more/1767859514340.jpg", to: "../1767859512340.jpg")
    let batch = try read(isNamed: false).batch
    #expect(batch.frames.map(\.source) == ["1767859512340.jpg"])
    let links = batch.refused.filter { $0.reason == "a symbolic link" }
    #expect(links.map(\.source) == ["1767859513340.jpg", "more/1767859514340.jpg"])
  }

  @Test func folderOfLinksToElsewhereIsRefusedWithThePatternThatNamesThem() throws {
    _ = try scratch.directory("frames/a b")
    for number in 1...3 {
      try picture("store/\(number).jpg")
      link("a b/000\(number).jpg", to: "../../store/\(number).jpg")
    }
    let named = #expect(throws: BadBatch.self) { try read() }
    #expect(named?.cause == "no frames; a b/0001.jpg is a symbolic link that leads out of the folder")
    #expect(named?.advice.hasPrefix("name the pictures one by one, as \(folder.shellWord)/'a b'/*.jpg: ") == true)
    let others = #expect(throws: BadBatch.self) { try read(isNamed: false) }
    #expect(others?.advice.hasPrefix("send the files themselves") == true)
  }

  /// Its masks may be those of other pictures.
  @Test func linkedDescriptionIsNeverFollowed() throws {
    try picture("frames/1767859512340.jpg")
    try scratch.file("frames/masks.json", Array(#"{"version":1}"#.utf8))
    link("batch.json", to: "masks.json")
    #expect(#expect(throws: BadBatch.self) { try read() }?.cause == "batch.json is a symbolic link")
  }

  @Test func batchThatIsALinkIsReadOnlyIfTheUserNamedIt() throws {
    try picture("frames/1767859512340.jpg")
    try Tool.output("tar", ["-cf", scratch.path("frames.tar"), "-C", folder, "."])
    for target in ["frames", "frames.tar"] {
      let path = scratch.path("link-to-" + target)
      symlink(target, path)
      #expect(try read(path).batch.frames.count == 1)
      let bad = #expect(throws: BadBatch.self) { try read(path, isNamed: false) }
      #expect(bad?.cause == "a symbolic link" && bad?.advice == "send the file or the folder that it leads to")
    }
  }

  @Test func namesThatAreNotUTF8AreRefusedByName() throws {
    let raw: [CChar] = (folder + "/d").utf8CString.dropLast() + [-28, 0]
    #expect(mkdir(raw, 0o700) == 0)
    let bad = #expect(throws: BadBatch.self) { try read() }
    #expect(bad?.cause == "no frames; d%E4 is a folder with a name that is not UTF-8")
    #expect(bad?.advice.contains("tar -cf ARCHIVE.tar \(folder.shellWord)") == true)
  }
}
