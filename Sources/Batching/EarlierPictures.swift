// Pictures that a worker of a version before the batcher has left in `ingest/SESSION/`: files `<unix ms>.<kind>`, batches `.NAME/` that
// it was making, and a list `.taken` of pictures in batches.

import FileSystem
import FrameBatches
import Glibc
import WorkQueues

struct EarlierPictures {
  private let directory: Directory
  private let spool: Spool

  init(in directory: Directory, _ spool: Spool) { (self.directory, self.spool) = (directory, spool) }

  /// Gives the pictures to the batcher that is opened next. A crash in between is taken up by the next call.
  func adopt() throws {
    let entries = try directory.entries()
    guard entries.contains(where: { $0.name.hasPrefix(".") || PlainFormat.instant(ofName: $0.name) != nil }) else {
      return
    }
    for entry in entries where entry.kind == .directory && entry.name.hasPrefix(".") {
      try finish(directory.path + "/" + entry.name)
    }
    let held = directory.path + "/held"
    try DurableFile.makeDirectories(held)
    for entry in try directory.entries() where entry.kind == .file {
      guard let timeMs = PlainFormat.instant(ofName: entry.name) else { continue }
      let file = directory.path + "/" + entry.name
      let kind = String(entry.name.drop { $0 != "." }.dropFirst())
      let picture = ReceivedPicture(
        at: timeMs, try SHA256.hex(ofFile: file, cancellation: .never), kind: kind,
        bytes: try DurableFile.size(of: file))
      _ = try DurableFile.move(file, to: held + "/" + picture.file.name)
    }
    try Directory(opening: held).sync()
    unlink(directory.path + "/.taken")
    try directory.sync()
  }

  /// Publishes a batch that is whole, or takes its pictures back.
  private func finish(_ draft: String) throws {
    let isWhole = DurableFile.isFile(draft + "/" + NativeFormat.description)
    for file in try Directory(opening: draft).entries() where PlainFormat.instant(ofName: file.name) != nil {
      // A power cut may have kept both names of a renamed picture.
      if isWhole {
        unlink(directory.path + "/" + file.name)
      } else {
        _ = try DurableFile.move(draft + "/" + file.name, to: directory.path + "/" + file.name)
      }
    }
    if isWhole {
      _ = try DurableFile.move(draft, to: spool.incoming + "/" + lastComponent(of: draft).dropFirst())
      try Directory(opening: spool.incoming).sync()
    }
    try directory.sync()
    try DurableFile.removeTree(draft)
  }
}
