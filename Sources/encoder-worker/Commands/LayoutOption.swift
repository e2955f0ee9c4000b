import ArgumentParser
import Sessions

extension StoreLayout: ExpressibleByArgument {}

/// How a store keeps the segments of a batch.
struct LayoutOption: ParsableArguments {
  @Option(
    help: .setting(
      "How a store keeps new segments: plain, or packed, which is one object for each batch and a quarter of the writes.",
      default: "plain", valueName: "layout"))
  var layout = StoreLayout.plain

  /// - Throws: ``ValidationError`` if the call asks for packs, and sessions are not in a store.
  func validate(withStore isStored: Bool) throws {
    guard isStored || !CallOptions.has("--layout") || layout == .plain else {
      throw ValidationError("--layout packed is for sessions in a store: add --store URL")
    }
  }
}
