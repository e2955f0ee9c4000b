import FileSystem
import FrameBatches

/// A file in a folder, as it was when it was complete.
package struct FolderFile: Sendable, Hashable {
  /// The path from the folder.
  package let name: String
  package let stamp: FileStamp

  package init(name: String, stamp: FileStamp) { (self.name, self.stamp) = (name, stamp) }
}

/// A picture that no batch has yet.
package struct LoosePicture: Sendable, Equatable {
  package let file: FolderFile
  /// The name of its copy in the batcher's directory; nil if its batch has to read the file.
  package var held: String?
  /// Whether that copy was synced.
  package var isSynced = false
  /// The capture in unix milliseconds.
  package var timeMs: Int64
  package let capture: Batch.Capture
  /// Milliseconds by which the clock of its device was behind; the capture is corrected by them.
  package var clockOffsetMs: Int64 = 0
  /// The name that the frame has in a batch, unless two have it.
  package var name: String

  /// - Parameter name: nil for that of the file.
  package init(_ file: FolderFile, held: String? = nil, timeMs: Int64, capture: Batch.Capture, name: String? = nil) {
    (self.file, self.held, self.timeMs, self.capture) = (file, held, timeMs, capture)
    self.name = name ?? lastComponent(of: file.name)
  }
}

/// A file that stays where it is, with the reason.
package struct LeftFile: Sendable, Equatable {
  package let name: String
  package let reason: String
  /// The remedy; nil if there is none but to look at the file.
  package var advice: String?

  package init(name: String, reason: String, advice: String? = nil) {
    (self.name, self.reason, self.advice) = (name, reason, advice)
  }
}
