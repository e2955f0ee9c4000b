/// Returns the bytes of the disk that a directory takes, as du(1) counts them.
public func diskBytes(of path: String) throws -> Int {
  let text = String(decoding: try Tool.output("du", ["-s", "-B1", path]), as: UTF8.self)
  guard let bytes = text.split(separator: "\t").first.flatMap({ Int($0) }) else { throw Tool.Failure("du: \(text)") }
  return bytes
}
