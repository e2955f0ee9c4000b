import CHiredis
import FileSystem

/// hiredis: who works from a directory has no need of it.
let hiredis = DynamicLibrary(
  "hiredis, which queues are asked with", package: String(cString: chr_name()).replacing(".so.", with: ""),
  chr_library()
) { chr_load(&$0) }
