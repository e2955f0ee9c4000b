import TestSupport
import Testing

/// Tests several hosts that share a spool. Skipped, with the reason, if this machine cannot create namespaces. `make
/// nightly-nfs` runs them over NFS.
@Suite struct HostTests {
  @Test func frozenAndDeadHostsNeitherLoseNorDuplicateBatches() async throws {
    let result = try await runWaiting("hosts/hosts.py")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    if result.text.contains("skipped") { print(result.text, terminator: "") }
  }
}
