/// Waits until a condition is true, without blocking a thread of Swift concurrency: the tested code may need it.
public func eventually(_ awaited: String, _ condition: () throws -> Bool) async throws {
  for _ in 0..<1_200 {
    if try condition() { return }
    try await Task.sleep(for: .milliseconds(50))
  }
  throw Tool.Failure("still not: \(awaited)")
}
