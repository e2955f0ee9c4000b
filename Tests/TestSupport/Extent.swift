import Foundation

/// The extent of long tests. `make test` runs samples. `make test-all` sets TEST_EXTENT=full and runs full load tests
/// and sessions of a day.
public enum Extent {
  public static let isFull = ProcessInfo.processInfo.environment["TEST_EXTENT"] == "full"

  public static func of<Value>(_ sample: Value, full: Value) -> Value { isFull ? full : sample }
}
