import FileSystem
import FrameBatches
import Glibc

/// The folder that pictures lie in until their batch is published.
package protocol PictureSource: AnyObject {
  /// The folder; nil if all pictures are in the batcher's own directory.
  var folder: Directory? { get throws }
  /// Reads a file that is still as it was found.
  func read(_ file: FolderFile) throws -> SourceContent
  /// Removes files that are in a batch, and are still what they were.
  ///
  /// - Returns: the files of each list that stay.
  func remove(_ files: [[FolderFile]]) throws -> [[FolderFile]]
  /// Gives pictures of one batch their times: those that tell no more than the second are spread over it.
  ///
  /// - Parameters:
  ///   - pictures: by capture.
  ///   - nextMs: the next capture; nil if it is not known.
  func refined(_ pictures: [LoosePicture], before nextMs: Int64?) -> [LoosePicture]
}

package enum SourceContent {
  case bytes([UInt8])
  case refused(String)
  /// The file has another version now, or is being written.
  case changed
  case gone
}

/// The source of pictures that were handed over: there are no other files.
package final class NoSource: PictureSource {
  package init() {}

  package var folder: Directory? { nil }
  package func read(_ file: FolderFile) -> SourceContent { .gone }
  package func remove(_ files: [[FolderFile]]) -> [[FolderFile]] { files.map { _ in [] } }
  package func refined(_ pictures: [LoosePicture], before nextMs: Int64?) -> [LoosePicture] { pictures }
}

extension Directory {
  /// Returns the stamp of an entry, of a link its own; nil if there is none.
  package func sourceStamp(of name: String) -> FileStamp? {
    var status = stat()
    return fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? FileStamp(status) : nil
  }
}
