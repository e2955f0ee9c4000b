import CFFmpeg
import FileSystem

/// A call into FFmpeg that failed.
package struct FFmpegError: Error, Equatable, CustomStringConvertible {
  /// The function that failed.
  package let function: String
  /// An `AVERROR` value.
  package let code: Int32

  package var isOutOfMemory: Bool { code == cff_error_enomem() }

  /// The meaning of the code, in FFmpeg's words.
  package var cause: String {
    if code == cff_error_invalid_data() { return "invalid data" }
    var text = [CChar](repeating: 0, count: Int(AV_ERROR_MAX_STRING_SIZE))
    av_strerror(code, &text, text.count)
    return text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }.lowercasedFirst
  }

  package var description: String { "\(function): \(cause) (AVERROR \(code))" }
}

/// Throws when an FFmpeg function says so by a negative result.
@discardableResult
package func check(_ function: String, _ result: Int32) throws(FFmpegError) -> Int32 {
  guard result >= 0 else { throw FFmpegError(function: function, code: result) }
  return result
}

/// The allocation's result, or that there is no memory.
func allocated<T>(_ function: String, _ pointer: T?) throws(FFmpegError) -> T {
  guard let pointer else { throw FFmpegError(function: function, code: cff_error_enomem()) }
  return pointer
}

/// The log of FFmpeg itself. Errors reach us as values; the log, on standard error, says nothing more that a user
/// could act on.
package enum FFmpegLog {
  /// Silences the log of the whole process: the library prints nothing.
  package static func silence() { av_log_set_level(AV_LOG_QUIET) }
}
