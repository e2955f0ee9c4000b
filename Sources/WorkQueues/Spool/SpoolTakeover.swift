// Dead workers: their claims are taken over, their trash is removed.

import FileSystem
import Glibc

extension SpoolQueue {
  /// Takes over the claims of dead workers: of this host at once, of other hosts after a lease without a heartbeat.
  package func takeOver() throws(DiskError) -> (claims: [Claim], failures: [any Error]) {
    // List them first: a later failure must not lose claims that were taken over.
    let others = try WorkerDirectory.ofOtherHosts(in: spool.claimed)
    var claims: [Claim] = []
    var failures = try WorkerDirectory.takeOver(in: spool.claimed) { dead in
      try empty(dead, into: &claims)
      // Counters, or a partial reason file.
      for file in try Directory(opening: dead).entries() where file.kind == .file && file.name != "alive" {
        unlink(dead + "/" + file.name)
      }
    }
    for other in others {
      do {
        // The worker may have lost only its connection: its directory stays.
        if try elsewhere.hasExpired(other) { try empty(other, into: &claims) }
      } catch {
        if DurableFile.exists(other) { failures.append(error) }
      }
    }
    elsewhere.keep(only: Set(others))
    do throws(DiskError) {
      try emptyTrash()
    } catch {
      // Recovered claims must not be lost because of this.
      failures.append(error)
    }
    return (claims, failures)
  }

  /// Moves all claims of a worker to this one.
  private func empty(_ dead: String, into claims: inout [Claim]) throws {
    for held in try Directory(opening: dead).entries() where held.kind == .directory {
      let directory = dead + "/" + held.name
      let (attempt, failures) = Claim.counts(ofDirectory: held.name)
      for batch in try Directory(opening: directory).entries() {
        let path = Array((directory + "/" + batch.name).utf8)
        if let claim = try take(path, name: batch.name, attempt: attempt, failures: failures) { claims.append(claim) }
      }
      rmdir(directory)
    }
  }

  package func heldElsewhere() throws -> Int {
    try WorkerDirectory.ofOtherHosts(in: spool.claimed).reduce(0) { held, other in
      try held + Directory(opening: other).entries().filter { $0.kind == .directory }.count
    }
  }

  /// Removes the trash of dead workers.
  private func emptyTrash() throws(DiskError) {
    for entry in try Directory(opening: spool.trash).entries()
    where !DurableFile.exists(spool.claimed + "/" + Spool.owner(inTrash: entry.name)) {
      try? DurableFile.removeTree(spool.trash + "/" + entry.name)
    }
  }
}
