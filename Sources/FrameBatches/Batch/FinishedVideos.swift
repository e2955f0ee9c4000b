/// The finished videos of a batch.
package struct FinishedVideos: Sendable {
  package struct Facts: Sendable {
    /// nil if the file's name alone tells its time.
    package let event: VideoEvent?
    /// The path of our manifest of it; nil if there is none.
    package let manifest: String?
  }

  /// The path of their folder as the user gave it; nil for an archive, or a batch of a queue.
  package let path: String?
  /// By path in the batch.
  package internal(set) var facts: [String: Facts] = [:]
  /// Those that are not among the frames.
  package internal(set) var unplaced: [RefusedFrame] = []
}
