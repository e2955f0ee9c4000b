// `ending/SESSION` in an object store: the sessions that are to end, or whose end is not announced yet. A process that works on one
// has written its own name into the object, on the condition that it was unchanged. After some minutes another one may take it.

import FileSystem
import FrameBatches
import JSON

struct EndRequestObjects {
  static let prefix = "ending/"
  private static let holder = "holder"
  /// Seconds for which a process has a request.
  private static let leaseS = 600

  /// The name of this process.
  private static let process = "\(WorkerID())"

  let objects: any ObjectClient
  /// The name of the process that takes requests.
  var own = process

  private func key(_ session: SessionID) -> String { Self.prefix + session.description }

  /// Writes a request. It replaces an older one, which awaits no more batches.
  func add(_ request: EndRequest) throws {
    _ = try objects.put(key(request.session), .bytes(request.bytes), .json, when: .always)
  }

  func isThere(_ session: SessionID) throws -> Bool { try objects.head(key(session)) != nil }

  /// Returns the sessions with a request.
  func sessions() throws -> [SessionID] {
    var (last, found): (String?, [SessionID]) = (nil, [])
    while true {
      let page = try objects.list(Self.prefix, after: last)
      guard let end = page.last else { return found }
      last = end.key
      found += page.compactMap { SessionID(String($0.key.dropFirst(Self.prefix.count))) }
    }
  }

  /// Takes a request.
  ///
  /// - Returns: nil if it is gone or waits, or another process has it.
  func take(_ session: SessionID, unless waits: (EndRequest) throws -> Bool) throws -> HeldEndRequest? {
    let key = key(session)
    guard let there = try objects.get(key, limit: EndRequest.maximumBytes) else { return nil }
    let json: JSONValue
    let request: EndRequest
    do {
      json = try JSONParser.parse(there.bytes)
      request = try EndRequest(json, of: session)
    } catch {
      throw DamagedOutput(path: key, cause: "no request: \(error)")
    }
    if let holder = json.object?[Self.holder]?.string, holder != own,
      try objects.head(key)?.ageS.map({ $0 < Self.leaseS }) ?? true
    {
      return nil
    }
    if try waits(request) { return nil }
    let taken = json.setting([Self.holder: .string(own)]).bytes() + [UInt8(ascii: "\n")]
    // Only this process writes its name.
    guard let tag = try objects.putOwn(key, taken, .json, when: .matching(there.tag)) else { return nil }
    return HeldEndRequest(request: request, hold: .object(tag))
  }

  /// Removes a request that was taken, unless a newer one has replaced it.
  func remove(_ session: SessionID, _ tag: ObjectTag) throws {
    // Not every store knows the condition of `delete`.
    if try objects.head(key(session))?.tag == tag { try objects.delete(key(session), tag) }
  }

  /// Removes a request.
  func remove(_ session: SessionID) throws { try objects.delete(key(session), nil) }
}
