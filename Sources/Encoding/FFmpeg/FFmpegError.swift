import CFFmpeg
import FileSystem

/// A failed call of FFmpeg.
package struct FFmpegError: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .environment }
  package let function: String
  /// An `AVERROR` value.
  package let code: Int32

  package var isOutOfMemory: Bool { code == cff_error_enomem() }

  /// The meaning of the code, in FFmpeg's words.
  package var cause: String {
    if code == cff_error_invalid_data() { return "invalid data" }
    var text = [CChar](repeating: 0, count: Int(AV_ERROR_MAX_STRING_SIZE))
    unsafe av_strerror(code, &text, text.count)
    return unsafe text.withUnsafeBufferPointer { unsafe String(cString: $0.baseAddress!) }.lowercasedFirst
  }

  package var description: String { "\(function): \(cause) (AVERROR \(code))" }
}

/// Throws when an FFmpeg function returns a negative result.
@discardableResult
package func check(_ function: String, _ result: Int32) throws(FFmpegError) -> Int32 {
  guard result >= 0 else { throw FFmpegError(function: function, code: result) }
  return result
}

/// Returns the result of an allocation, or throws when there is no memory.
func allocated<T>(_ function: String, _ pointer: T?) throws(FFmpegError) -> T {
  guard let pointer else { throw FFmpegError(function: function, code: cff_error_enomem()) }
  return pointer
}

package enum FFmpegLog {
  /// Silences FFmpeg's log on standard error for the whole process. Errors reach us as values; the log tells users nothing more.
  package static func silence() { av_log_set_level(AV_LOG_QUIET) }
}
