import Foundation

extension Tool.Result {
  /// Decodes the output, which is one JSON text.
  public func json<Value: Decodable>(as type: Value.Type) throws -> Value {
    try JSONDecoder().decode(type, from: output)
  }

  /// Decodes the output, which has one JSON text a line.
  public func jsonLines<Value: Decodable>(as type: Value.Type) throws -> [Value] {
    try text.split(separator: "\n").map { try JSONDecoder().decode(type, from: Data($0.utf8)) }
  }
}
