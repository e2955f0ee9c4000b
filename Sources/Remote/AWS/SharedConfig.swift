// The shared files of Amazon's tools: ~/.aws/config and ~/.aws/credentials.
// https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html

import FileSystem
import Glibc

/// The sections of the shared files that matter here, by name.
struct SharedConfig: Sendable, SecretValue {
  private var profiles: [String: [String: String]] = [:]
  private var services: [String: [String: String]] = [:]

  /// Returns a profile; nil if there is none.
  func profile(_ name: String) -> AWSProfile? {
    profiles[name].map { values in
      AWSProfile(name: name, values: values, services: values["services"].flatMap { services[$0] } ?? [:])
    }
  }

  /// Adds the sections of a file. Its values replace those of files before; its key pair does so as a whole.
  ///
  /// - Parameter isCredentials: whether sections are named for profiles alone, and others do not exist.
  /// - Throws: ``Failure``, which names the line.
  mutating func add(_ text: String, path: String, isCredentials: Bool) throws {
    var file = SharedConfig()
    try file.parse(text, path: path, isCredentials: isCredentials)
    for (name, values) in file.profiles {
      var all = profiles[name] ?? [:]
      // The session token of another key pair would make the requests invalid.
      if values["aws_access_key_id"] != nil { all = all.filter { !Self.credentialKeys.contains($0.key) } }
      profiles[name] = all.merging(values) { $1 }
    }
    services.merge(file.services) { $0.merging($1) { $1 } }
  }

  private static let credentialKeys: Set = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"]

  private mutating func parse(_ text: String, path: String, isCredentials: Bool) throws {
    var section: WritableKeyPath<SharedConfig, [String: [String: String]]>?
    var name = ""
    var parent: String?
    // Of the last key that is not nested; nil before the first of a section.
    var indent: Int?
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
      let content = Self.trimmed(line)
      guard let first = content.first, first != "#", first != ";" else { continue }
      if first == "[" {
        (section, name) = Self.section(content, isCredentials)
        (parent, indent) = (nil, nil)
        if let section { self[keyPath: section][name, default: [:]] = self[keyPath: section][name] ?? [:] }
        continue
      }
      guard let section else { continue }
      guard let sign = content.firstIndex(of: "=") else {
        throw Failure(.usage, "\(path):\(index + 1): neither [section] nor name = value; correct the line")
      }
      let key = Self.trimmed(content[..<sign]).lowercased()
      let value = Self.value(content[content.index(after: sign)...])
      let blanks = line.prefix { $0 == " " || $0 == "\t" }.count
      let isNested = indent.map { blanks > $0 } ?? false
      if !isNested { (parent, indent) = (value.isEmpty ? key : nil, blanks) }
      guard !isNested || parent != nil else {
        throw Failure(
          .usage, "\(path):\(index + 1): '\(key.oneLine)' is below a key that has a value; remove the blanks before it")
      }
      self[keyPath: section][name]?[isNested ? "\(parent ?? "").\(key)" : key] = value
    }
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var rest = text.drop { $0 == " " || $0 == "\t" }
    while let last = rest.last, last == " " || last == "\t" { rest.removeLast() }
    return rest
  }

  /// A value ends before a comment, which has a blank before it.
  private static func value(_ text: Substring) -> String {
    var end = text.endIndex
    for mark in [" #", " ;", "\t#", "\t;"] {
      if let found = text.firstRange(of: mark), found.lowerBound < end { end = found.lowerBound }
    }
    return String(trimmed(text[..<end]))
  }

  /// - Parameter text: `[profile NAME]`, `[default]`, `[services NAME]`; in a file of credentials `[NAME]`.
  private static func section(
    _ text: Substring, _ isCredentials: Bool
  ) -> (WritableKeyPath<SharedConfig, [String: [String: String]]>?, String) {
    let title = trimmed(text.dropFirst().prefix { $0 != "]" })
    if isCredentials || title == "default" { return (\SharedConfig.profiles, String(title)) }
    for (word, section) in [("profile", \SharedConfig.profiles), ("services", \SharedConfig.services)] {
      guard title.hasPrefix(word), let blank = title.dropFirst(word.count).first, blank == " " || blank == "\t"
      else { continue }
      return (section, trimmed(title.dropFirst(word.count)).filter { $0 != "\"" && $0 != "'" })
    }
    return (nil, "")
  }
}

/// A profile of the shared files.
struct AWSProfile: Sendable, SecretValue {
  let name: String
  private let values: [String: String]
  private let services: [String: String]

  init(name: String, values: [String: String], services: [String: String]) {
    (self.name, self.values, self.services) = (name, values, services)
  }

  /// A value that is not empty. Nested ones have a point: `s3.addressing_style`.
  subscript(key: String) -> String? { values[key].flatMap { $0.isEmpty ? nil : $0 } }

  /// The configured address of one service.
  func endpoint(of service: String) -> String? {
    services["\(service).endpoint_url"].flatMap { $0.isEmpty ? nil : $0 }
  }
}

/// The paths of the shared files.
struct SharedConfigFiles: Sendable {
  private let config: (path: String, isNamed: Bool)?
  private let credentials: (path: String, isNamed: Bool)?

  private static let maximumBytes = 1 << 20

  init(_ variables: [String: String]) {
    func file(_ variable: String, _ name: String) -> (path: String, isNamed: Bool)? {
      if let path = variables[variable] { return (path, true) }
      return variables["HOME"].map { ("\($0)/.aws/\(name)", false) }
    }
    config = file("AWS_CONFIG_FILE", "config")
    credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials")
  }

  /// For messages.
  var paths: String {
    [config, credentials].compactMap { $0?.path }.joined(separator: " or ").oneLine
  }

  /// Reads the files. Missing ones are empty, and so are unreadable ones that no variable names.
  ///
  /// - Throws: ``Failure``.
  func load() throws -> SharedConfig {
    var all = SharedConfig()
    for case (let file?, let isCredentials) in [(config, false), (credentials, true)] {
      let bytes: [UInt8]?
      do {
        bytes = try CredentialFile.contents(of: file.path, limit: Self.maximumBytes)
      } catch let failure where !file.isNamed || failure.code == ENOENT {
        continue
      } catch {
        throw Failure(.usage, "\(error); make the file readable, or unset its variable")
      }
      guard let bytes, let text = String(validating: bytes, as: UTF8.self) else {
        throw Failure(.usage, "\(file.path): no text of at most \(Self.maximumBytes) bytes; name another file")
      }
      try all.add(text, path: file.path, isCredentials: isCredentials)
    }
    return all
  }
}

/// Small files that others write: configuration, tokens. Kubernetes replaces its own by means of links.
enum CredentialFile {
  /// Returns the bytes of a file, or of the target of a link; nil if it is no regular file, or larger than `limit`.
  static func contents(of path: String, limit: Int) throws(DiskError) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { throw DiskError("open", path) }
    guard let opened = try OpenFile(owning: file, path: path) else { return nil }
    // One byte more tells that the file is larger.
    var bytes = [UInt8](repeating: 0, count: limit + 1)
    var count = 0
    while count < bytes.count {
      let read = try check("read", path) {
        bytes.withUnsafeMutableBytes {
          pread(opened.descriptor, $0.baseAddress! + count, $0.count - count, off_t(count))
        }
      }
      if read == 0 { break }
      count += read
    }
    return count <= limit ? Array(bytes.prefix(count)) : nil
  }

  /// Returns the text of a token, which is one line; nil if it is none.
  static func token(at path: String) throws(DiskError) -> String? {
    guard let bytes = try contents(of: path, limit: 64 << 10) else { return nil }
    let token = bytes.drop { $0 <= 32 }.prefix { (33...126).contains($0) }
    let rest = bytes.drop { $0 <= 32 }.dropFirst(token.count)
    return token.isEmpty || !rest.allSatisfy { $0 <= 32 } ? nil : String(decoding: token, as: UTF8.self)
  }
}
