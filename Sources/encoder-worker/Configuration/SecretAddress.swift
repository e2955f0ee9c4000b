import ArgumentParser
import Notifying
import Remote

/// An address that may hold a secret. The parser would print a refused value: so any text makes an address, an option of
/// this type takes no `transform`, and its command calls ``validate()``.
protocol SecretAddress: ExpressibleByArgument {
  associatedtype Fault: CustomStringConvertible
  /// The option that takes the address.
  static var option: String { get }
  /// The reason why the address is invalid, without the address; nil if it is valid.
  var fault: Fault? { get }
}

extension SecretAddress {
  /// - Throws: a usage error.
  func validate() throws { if let fault { throw ValidationError("\(Self.option): \(fault)") } }
}

extension QueueAddress: SecretAddress { static var option: String { "--queue" } }

extension WebhookURL: SecretAddress { static var option: String { "--notify" } }
