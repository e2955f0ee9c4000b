import FrameBatches

/// An encoder that libavcodec was built without.
package struct MissingEncoder: Error, Equatable, CustomStringConvertible {
  package let name: String

  package var cause: String { "the installed libavcodec has no encoder \(name)" }
  package var advice: String { "write a GIF or an MP4, or install a libavcodec with \(name), as Debian's" }

  package var description: String { "\(cause); \(advice)" }
}
