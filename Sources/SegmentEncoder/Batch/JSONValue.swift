import FoundationEssentials

/// Any JSON: what a producer's metadata is to us, who only carry it.
public indirect enum JSONValue: Sendable, Equatable, Codable {
  case null
  case bool(Bool)
  case integer(Int64)
  case unsigned(UInt64)
  case number(Decimal)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(UInt64.self) {
      self = .unsigned(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSONValue].self) {
      self = .array(value)
    } else if let value = try? container.decode([String: JSONValue].self) {
      self = .object(value)
    } else {
      let value = try container.decode(Decimal.self)
      guard value.isFinite else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "a number that is not finite")
      }
      self = .number(value)
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .unsigned(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }
}

/// JSON as we write it: keys sorted, slashes as they are.
enum JSONText {
  static func encode(_ value: some Encodable, pretty: Bool = false) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if pretty { encoder.outputFormatting.insert(.prettyPrinted) }
    return Array(try encoder.encode(value)) + [UInt8(ascii: "\n")]
  }

  static func decode<T: Decodable>(_ type: T.Type, from bytes: [UInt8], lenient: Bool = false) throws -> T {
    let decoder = JSONDecoder()
    decoder.allowsJSON5 = lenient
    return try decoder.decode(type, from: Data(bytes))
  }
}
