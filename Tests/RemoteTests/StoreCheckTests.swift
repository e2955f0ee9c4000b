import Foundation
import Sessions
import Synchronization
import TestSupport
import Testing

@testable import Remote

/// Tests `config check` against stores that keep their promises, and stores that do not.
@Suite struct StoreCheckTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// A store that breaks one promise.
  private struct Broken: ObjectClient {
    enum Fault: CaseIterable {
      case racy, untagged, forgetful, lying, sticky, undeletable, sizeless, conjuring, exact, ageless
    }

    let fault: Fault
    let objects = MemoryObjects()

    func get(_ key: String, limit: Int) throws -> StoredObject? {
      if fault == .conjuring, key.hasSuffix("/never") { return StoredObject(bytes: [1], tag: ObjectTag("\"x\"")) }
      guard let there = try objects.get(key, limit: limit) else { return nil }
      return fault == .lying
        ? StoredObject(bytes: there.bytes.map { $0 ^ 1 }, tag: there.tag)
        : StoredObject(bytes: there.bytes, tag: tag(there.tag))
    }

    func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? {
      try objects.download(key, to: path, limit: limit)
    }

    func head(_ key: String) throws -> ObjectInfo? {
      try objects.head(key).map { info in
        ObjectInfo(key: key, size: info.size + (fault == .sizeless ? 1 : 0), tag: info.tag, ageS: info.ageS)
      }
    }

    func put(
      _ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition
    ) throws -> ObjectTag? {
      // Checks, waits, and writes.
      if fault == .racy, condition != .always {
        let there = try objects.head(key)?.tag
        usleep(20_000)
        let holds = if case .matching(let tag) = condition { there == tag } else { there == nil }
        return holds ? try objects.put(key, body, kind, when: .always) : nil
      }
      return try objects.put(key, body, kind, when: condition).map(tag)
    }

    func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool {
      try objects.copy(key, tag, to: target)
    }

    func delete(_ key: String, _ tag: ObjectTag?) throws {
      if fault == .undeletable, key.hasSuffix("/first") {
        throw ObjectStoreError("DELETE", key, "no answer", advice: "run it again")
      }
      try objects.delete(key, fault == .forgetful ? nil : tag)
      if fault == .sticky, key.hasSuffix("gone") { objects[key] = [1] }
    }

    func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] {
      // Begins at the first key if it does not find the other one.
      let after = fault == .exact && key.map { objects[$0] == nil } == true ? nil : key
      return try objects.list(prefix, after: after).map { info in
        fault == .ageless ? ObjectInfo(key: info.key, size: info.size, tag: info.tag) : info
      }
    }

    private func tag(_ tag: ObjectTag) -> ObjectTag { fault == .untagged ? ObjectTag("\"same\"") : tag }
  }

  private func faults(_ objects: any ObjectClient) throws -> Set<StoreCheck.Check> {
    Set(try StoreCheck(objects).run().filter { $0.fault != nil }.map(\.check))
  }

  @Test func storeThatKeepsAllPromisesHasNoFault() throws {
    let objects = MemoryObjects()
    objects["incoming/a"] = [1]
    #expect(try faults(objects).isEmpty)
    #expect(objects.keys == ["incoming/a"])
  }

  @Test func brokenPromiseIsFound() throws {
    #expect(try faults(Broken(fault: .racy)) == [.racedIfNoneMatch, .racedIfMatch])
    #expect(try faults(Broken(fault: .untagged)).isSuperset(of: [.tags, .ifMatch]))
    #expect(try faults(Broken(fault: .forgetful)) == [.conditionalDelete])
    #expect(try faults(Broken(fault: .lying)).isSuperset(of: [.read, .copy]))
    #expect(try faults(Broken(fault: .sticky)) == [.delete])
    #expect(try faults(Broken(fault: .sizeless)) == [.head])
    #expect(try faults(Broken(fault: .conjuring)) == [.missing])
    #expect(try faults(Broken(fault: .exact)) == [.listFromAnyKey])
    #expect(try faults(Broken(fault: .ageless)) == [.listedAges] && !StoreCheck.Check.listedAges.isRequired)
  }

  @Test func findingsStayWhenAnObjectCannotBeRemoved() throws {
    let store = Broken(fault: .undeletable)
    let findings = try StoreCheck(store).run()
    #expect(findings.count == StoreCheck.Check.allCases.count)
    let faults = findings.filter { $0.fault != nil }
    #expect(faults.map(\.check) == [.delete] && faults.first?.fault?.contains(".check-") == true)
    #expect(store.objects.keys.count == 1)
  }

  @Test func storeWithoutConditionsIsFound() throws {
    let objects = MemoryObjects()
    objects.isUnconditional = true
    #expect(
      try faults(objects).isSuperset(of: [.ifNoneMatch, .racedIfNoneMatch, .ifMatch, .racedIfMatch]))
  }

  @Test func storeThatTakesNothingIsAnError() throws {
    let objects = MemoryObjects()
    objects.fail(from: 0)
    #expect(throws: MemoryObjects.Refused.self) { try StoreCheck(objects).run() }
  }

  @Test(.enabled(if: StoreServer.isInstalled, Comment(rawValue: StoreServer.reason)))
  func commandChecksAStore() throws {
    let store = try StoreServer.shared.get()
    let location = "s3://replay/\(UUID().uuidString)"
    let result = try Tool.run(
      EncoderWorker.path, ["config", "check", "--store", location, "--json"], environment: store.environment)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.text.split(separator: "\n").count == StoreCheck.Check.allCases.count)
    #expect(result.text.components(separatedBy: #""works":true"#).count > 10)
    #expect(try store.keys(String(location.dropFirst("s3://replay/".count))).isEmpty)
    let nowhere = try Tool.run(
      EncoderWorker.path, ["config", "check", "--store", "s3://nowhere"], environment: store.environment)
    #expect(nowhere.status == 75 && nowhere.errors.contains("NoSuchBucket"))
    let unsigned = try Tool.run(
      EncoderWorker.path, ["config", "check", "--store", location, "--unsigned"], environment: store.environment)
    #expect(unsigned.status == 75 && unsigned.errors.contains("leave out --unsigned"))
  }

  /// Each write is performed, its answer is lost, and the client repeats it.
  @Test(.enabled(if: StoreServer.isInstalled, Comment(rawValue: StoreServer.reason)))
  func lostAnswersOfAStoreAreNoFaults() throws {
    try scratch.file("control", Array(#"{"losesWrites": true}"#.utf8))
    let store = try StoreServer(variables: ["STORE_CONTROL": scratch.path("control")])
    let location = "s3://replay/some"
    let result = try Tool.run(
      EncoderWorker.path, ["config", "check", "--store", location, "--json"], environment: store.environment)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    var settings = try S3Settings(environment: { store.environment[$0] }, unsigned: false)
    settings.pauseMs = 1
    let client = try S3Client(S3Location(location), settings)
    try client.requireConditions(tryingAt: "incoming/.x", name: location)
    #expect(client.requests["PUT"] ?? 0 > 5)
    #expect(try store.keys().isEmpty)
  }
}
