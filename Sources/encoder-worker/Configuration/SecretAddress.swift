import ArgumentParser
import FileSystem
import Remote

/// An address that may hold a secret. The parser would print a refused value: so any text makes an address, an option of
/// this type takes no `transform`, and its command calls ``validate()``.
protocol SecretAddress: ExpressibleByArgument {
  associatedtype Fault: CustomStringConvertible
  /// The reason why the address is invalid, without the address; nil if it is valid.
  var fault: Fault? { get }
}

extension SecretAddress {
  /// - Parameter option: takes the address.
  /// - Throws: a usage error.
  func validate(_ option: String) throws { if let fault { throw ValidationError("\(option): \(fault)") } }
}

extension QueueAddress: SecretAddress {}
extension HTTPAddress: SecretAddress {}
