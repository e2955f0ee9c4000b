import CFFmpeg
import FileSystem

/// libavformat, which reads MP4 files. Encoding does not need it.
package enum FormatLibrary {
  static let library = unsafe DynamicLibrary("libavformat, which MP4 files are read with", cff_format()) {
    unsafe cff_load_format(&$0)
  }

  /// Loads libavformat now, to report early that it is missing.
  ///
  /// - Throws: ``Failure``.
  package static func load() throws { _ = try library.functions() }
}
