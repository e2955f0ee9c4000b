// One program for all fuzz targets: `fuzz TARGET [libFuzzer's options and directories]`. A trap, a broken promise, a
// leak, too long a run or too much memory: each is a finding.

import CLibFuzzer
import Glibc
import Sessions

@testable import Encoding

guard FuzzTarget.current != nil else {
  print(FuzzTarget.allCases.map(\.rawValue).joined(separator: "\n"))
  exit(64)
}
FFmpegLog.silence()
// libFuzzer takes whatever is no option for a corpus, so our own word is left out.
let words = CommandLine.unsafeArgv
words[1] = words[0]
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = words + 1
var count = CommandLine.argc - 1
exit(
  LLVMFuzzerRunDriver(&count, &arguments) { start, count in
    FuzzTarget.current?.run(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
  })
