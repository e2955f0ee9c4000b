import Foundation

/// A validator for the keywords of JSON Schema 2020-12 that `docs/event.schema.json` uses. It also reports members that the schema
/// does not describe.
public struct JSONSchema {
  private let root: [String: Any]

  private static let known: Set = [
    "$schema", "$defs", "$ref", "title", "type", "required", "properties", "items", "enum", "const", "pattern",
    "minimum", "maximum", "minItems", "maxItems", "if", "then", "else",
  ]

  public init(_ path: String) throws {
    let text = try Data(contentsOf: Fixture.root.appendingPathComponent(path))
    root = try JSONSerialization.jsonObject(with: text) as? [String: Any] ?? [:]
  }

  /// Returns the faults of a JSON text. Empty if it is valid.
  public func faults(of text: some StringProtocol) throws -> [String] {
    faults(of: try JSONSerialization.jsonObject(with: Data(text.utf8)), root, at: "")
  }

  private func faults(of value: Any, _ schema: [String: Any], at path: String, isWhole: Bool = true) -> [String] {
    var faults = schema.keys.filter { !Self.known.contains($0) }.map { "\(path): unknown keyword \($0)" }
    if let reference = schema["$ref"] as? String {
      let definitions = root["$defs"] as? [String: Any]
      let target = definitions?[reference.replacing("#/$defs/", with: "")] as? [String: Any]
      faults += target.map { self.faults(of: value, $0, at: path) } ?? ["\(path): no \(reference)"]
    }
    if let type = schema["type"] as? String, !Self.has(value, type) { faults.append("\(path): no \(type)") }
    if let constant = schema["const"] as? String, value as? String != constant {
      faults.append("\(path): not \(constant)")
    }
    if let values = schema["enum"] as? [String], !values.contains(value as? String ?? "") {
      faults.append("\(path): none of \(values)")
    }
    if let pattern = schema["pattern"] as? String,
      (value as? String)?.range(of: pattern, options: .regularExpression) == nil
    {
      faults.append("\(path): not like \(pattern)")
    }
    if let minimum = schema["minimum"] as? Int, (value as? Int).map({ $0 < minimum }) ?? true {
      faults.append("\(path): below \(minimum)")
    }
    if let maximum = schema["maximum"] as? Int, (value as? Int).map({ $0 > maximum }) ?? true {
      faults.append("\(path): above \(maximum)")
    }
    if let list = value as? [Any] {
      if let minimum = schema["minItems"] as? Int, list.count < minimum { faults.append("\(path): too short") }
      if let maximum = schema["maxItems"] as? Int, list.count > maximum { faults.append("\(path): too long") }
      if let items = schema["items"] as? [String: Any] {
        for (index, item) in list.enumerated() { faults += self.faults(of: item, items, at: "\(path)/\(index)") }
      }
    }
    if let members = value as? [String: Any] {
      let properties = schema["properties"] as? [String: [String: Any]] ?? [:]
      for name in schema["required"] as? [String] ?? [] where members[name] == nil {
        faults.append("\(path): no \(name)")
      }
      for (name, member) in members {
        if let property = properties[name] {
          faults += self.faults(of: member, property, at: "\(path)/\(name)")
        } else if isWhole && !properties.isEmpty {
          faults.append("\(path)/\(name): not in the schema")
        }
      }
    }
    if let condition = schema["if"] as? [String: Any] {
      let holds = self.faults(of: value, condition, at: path, isWhole: false).isEmpty
      let consequence = schema[holds ? "then" : "else"] as? [String: Any] ?? [:]
      faults += self.faults(of: value, consequence, at: path, isWhole: false)
    }
    return faults
  }

  private static func has(_ value: Any, _ type: String) -> Bool {
    // On Linux, a boolean of JSONSerialization is an NSNumber of the type `c`, and an integer may be cast to a boolean.
    let isBoolean = (value as? NSNumber).map { String(cString: $0.objCType) == "c" } ?? (value is Bool)
    switch type {
    case "object": return value is [String: Any]
    case "array": return value is [Any]
    case "string": return value is String
    case "boolean": return isBoolean
    case "integer": return !isBoolean && value is Int
    default: return false
    }
  }
}
