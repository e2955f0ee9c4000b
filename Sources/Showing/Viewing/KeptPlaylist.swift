// The playlists that a worker keeps in `hls/` of a session, for a server that shows the session at the same time: players get one
// playlist, whichever of both they ask.

import FileSystem
import FrameBatches
import Sessions

/// A playlist as a worker keeps it.
package struct KeptPlaylist {
  package let text: [UInt8]
  /// Changes with the text.
  package let tag: String
}

extension SessionCatalog {
  /// Returns a playlist of a session as a worker keeps it, with an end if nothing has come of the session for long.
  ///
  /// - Parameter name: of the playlist.
  /// - Returns: nil if there is none, or if no worker keeps it any more: then that of ``SessionPlayback`` has more.
  /// - Throws: `DiskError`.
  package func keptPlaylist(named name: String, of playback: SessionPlayback) throws -> KeptPlaylist? {
    try stored?.copy(of: playback.session)?.refreshPlaylists()
    guard let media = try keptText(HLSPlaylist.file, of: playback.session),
      HLSPlaylist.session(of: media.text) == playback.session.description,
      let kept = name == HLSPlaylist.file ? media : try keptText(name, of: playback.session)
    else { return nil }
    guard playback.listing.hasEnded, !HLSPlaylist.hasEnded(media.text) else { return kept }
    guard HLSPlaylist.lastStart(in: media.text) == playback.startsMs.last else { return nil }
    if name == HLSViews.multivariantFile { return kept }
    return KeptPlaylist(text: kept.text + Array(HLSPlaylist.endTag.utf8), tag: kept.tag + "-end")
  }

  /// Opens a fragment or an initialization that a worker keeps in a store, and that is not one of ``SessionPlayback``.
  ///
  /// - Returns: nil if there is none, or the session is in a directory.
  /// - Throws: ``BadSession`` for an object that is none; an error of the store or the disk.
  package func keptFile(named name: String, of session: SessionID) throws -> OpenFile? {
    try stored?.copy(of: session)?.keptFile(named: name)
  }

  private func keptText(_ name: String, of session: SessionID) throws -> KeptPlaylist? {
    guard let file = try file(name, in: HLSPackage.directory, of: session),
      case .bytes(let text) = try readRegularFile(file.descriptor, path: name, limit: IndexText.maximumBytes)
    else { return nil }
    return KeptPlaylist(text: text, tag: file.stamp.tag)
  }
}
