// One program for all fuzz targets: `fuzz TARGET [libFuzzer's options and directories]`. Each of these is a finding: a
// trap, a violated invariant, a leak, a timeout, too much memory.

import CLibFuzzer
import Glibc
import Sessions

@testable import Encoding

guard FuzzTarget.current != nil else {
  print(FuzzTarget.allCases.map(\.rawValue).joined(separator: "\n"))
  exit(64)
}
FFmpegLog.silence()
// libFuzzer reads each argument that is no option as a corpus, so this drops the target's name.
let words = CommandLine.unsafeArgv
words[1] = words[0]
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = words + 1
var count = CommandLine.argc - 1
exit(
  LLVMFuzzerRunDriver(&count, &arguments) { start, count in
    FuzzTarget.current?.run(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
  })
