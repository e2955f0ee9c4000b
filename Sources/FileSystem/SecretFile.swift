import Glibc

/// A file with secrets, which not everybody may read. It may be a link, as in a mounted Kubernetes secret.
package enum SecretFile {
  /// - Parameters:
  ///   - content: what the file has, for messages: `the secret`.
  ///   - limit: of its size, in bytes.
  /// - Throws: ``Failure``, ``DiskError``.
  package static func bytes(of path: String, content: String, limit: Int) throws -> [UInt8] {
    func unusable(_ cause: String, _ advice: String) -> Failure {
      Failure(.usage, "read", path, cause, advice: advice)
    }
    let descriptor = try check("open", path) { open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
    guard let file = try OpenFile(owning: descriptor, path: path) else {
      throw unusable("no file", "name a file with \(content)")
    }
    var status = stat()
    guard fstat(file.descriptor, &status) == 0 else { throw DiskError("fstat", path) }
    guard status.st_mode & (S_IROTH | S_IWOTH) == 0 else {
      throw unusable("everybody may read it", "run: chmod o-rw \(path.shellWord)")
    }
    guard case .bytes(let bytes) = try readRegularFile(file.descriptor, path: path, limit: limit) else {
      throw unusable("more than \(limit) bytes", "name a file that has only \(content)")
    }
    return bytes
  }
}
