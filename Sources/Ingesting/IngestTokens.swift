// The producers that may write, and their bearer tokens: lines NAME TOKEN [SESSION-PREFIX] of a file.

import FileSystem
import FrameBatches
import Logging
import Synchronization

/// A client that may write.
package struct Producer: Sendable, Equatable {
  package let name: String
  /// The beginning of its sessions' names; empty for all sessions.
  let prefix: String
  /// Whether nobody else may write.
  var isAlone = false

  /// Its part of the names of its batches.
  var nameInQueues: String { DeliveredName("", of: name).producer ?? "" }

  func mayWrite(to session: SessionID) -> Bool { session.description.hasPrefix(prefix) }
}

/// The tokens of all producers. The file is read again on request; a file that cannot be used changes nothing.
package final class IngestTokens: Sendable {
  private static let maximumBytes = 1 << 20
  private static let maximumProducers = 10_000
  /// The fewest characters of a token: 16 of base64 have 96 bits.
  private static let tokenLengths = 16...256

  private struct Entry: Sendable {
    let producer: Producer
    /// Of the token, under the key of this process.
    let digest: [UInt8]
  }

  private let path: String
  /// Digests under a key that nobody knows tell nothing by the time that their comparison takes.
  private let key: [UInt8]
  private let entries: Mutex<[Entry]>

  /// - Throws: ``Failure``, ``DiskError``.
  package init(file path: String) throws {
    self.path = path
    key = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
    entries = Mutex(try Self.read(path, key: key))
  }

  /// Reads the file again. If that fails, the tokens stay as they were.
  package func reload(_ logger: Logger) {
    do {
      let read = try Self.read(path, key: key)
      entries.withLock { $0 = read }
      logger.notice("tokens.reloaded", metadata: ["producers": .stringConvertible(read.count)])
    } catch {
      logger.error("tokens.kept", metadata: ["error": "\(error)"])
    }
  }

  /// The producer with a token. The time for it is the same for all tokens of a length.
  func producer(withToken token: String) -> Producer? {
    guard token.utf8.count <= Self.tokenLengths.upperBound else { return nil }
    let digest = SHA256.authentication(of: Array(token.utf8), key: key)
    var found: Producer?
    let entries = entries.withLock { $0 }
    for entry in entries {
      let difference = zip(entry.digest, digest).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) }
      if difference == 0 { found = entry.producer }
    }
    found?.isAlone = entries.count == 1
    return found
  }

  private static func read(_ path: String, key: [UInt8]) throws -> [Entry] {
    func unusable(_ cause: String, _ advice: String) -> Failure {
      Failure(.usage, "read", path, cause, advice: advice)
    }
    let bytes = try SecretFile.bytes(of: path, content: "lines NAME TOKEN [SESSION-PREFIX]", limit: maximumBytes)
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw unusable("not UTF-8", "write names and tokens in ASCII")
    }
    var entries: [Entry] = []
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
      let words = line.split { $0 == " " || $0 == "\t" }.map(String.init)
      guard let name = words.first, !name.hasPrefix("#") else { continue }
      // The message shows no word of the line: any of them may be a token.
      func wrong(_ cause: String) -> Failure {
        unusable(
          "line \(index + 1): \(cause)", "write NAME TOKEN [SESSION-PREFIX], a token by: openssl rand -base64 32")
      }
      guard (2...3).contains(words.count) else { throw wrong("\(words.count) words") }
      guard tokenLengths.contains(words[1].utf8.count), words[1].utf8.allSatisfy({ (33...126).contains($0) }) else {
        throw wrong("a token has \(tokenLengths.lowerBound) to \(tokenLengths.upperBound) printable characters")
      }
      let prefix = words.count == 3 ? words[2] : ""
      guard prefix.isEmpty || SessionID(prefix) != nil else { throw wrong("no session can begin with this prefix") }
      let digest = SHA256.authentication(of: Array(words[1].utf8), key: key)
      guard !entries.contains(where: { $0.digest == digest || $0.producer.name == name }) else {
        throw wrong("a name or token for the second time")
      }
      guard entries.count < maximumProducers else { throw wrong("more than \(maximumProducers) producers") }
      entries.append(Entry(producer: Producer(name: name, prefix: prefix), digest: digest))
    }
    guard !entries.isEmpty else { throw unusable("no token", "add a line NAME TOKEN") }
    return entries
  }
}
