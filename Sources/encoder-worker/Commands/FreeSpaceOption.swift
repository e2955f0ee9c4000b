import ArgumentParser
import FileSystem

/// The free space that commands leave which run until they are stopped.
struct FreeSpaceOption: ParsableArguments {
  @Option(
    help: .setting("Leave this many bytes free on each disk that is written to, as 2GB.", valueName: "bytes"),
    transform: ByteCount.parse)
  var minFree = 0

  var rule: FreeSpace { FreeSpace(minimum: minFree) }
}
