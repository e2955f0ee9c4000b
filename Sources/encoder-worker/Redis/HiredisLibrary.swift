import CHiredis
import FileSystem

/// hiredis, loaded for queues only.
let hiredis = DynamicLibrary(
  "hiredis, which queues are asked with", package: String(cString: chr_name()).replacing(".so.", with: "")
) {
  var functions = chr_library()
  return chr_load(&functions).map { .failure(.init($0)) } ?? .success(functions)
}
