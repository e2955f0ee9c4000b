import FileSystem
import FrameBatches

/// An encoder that libavcodec was built without.
package struct MissingEncoder: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .environment }
  package let name: String

  package var cause: String { "the installed libavcodec has no encoder \(name)" }
  package var advice: String { "write a GIF or an MP4, or install a libavcodec with \(name), as Debian's" }

  package var description: String { "\(cause); \(advice)" }
}
