import FileSystem
import FrameBatches
import Showing
import Synchronization
import TestSupport
import Testing

@testable import Serving

/// All routes of `serve`. Only pages are answered outside of the gates; their handlers cannot reach the sessions.
@Suite struct RouteTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func answer(_ route: Route, _ routes: SessionRoutes, isGone: Bool = false) -> HTTPResponse {
    let parts = route.pattern.enumerated().map { $1 != "*" ? $1 : $0 == 1 ? "s01" : "segment-1767859512340.mp4" }
    let request = HTTPRequest(
      method: "GET", path: "/" + parts.joined(separator: "/"), header: { _ in nil },
      argument: { $0 == "t" ? "1767859512340" : $0 == "text" ? "word" : nil }, isAbandoned: { isGone })
    return routes.answer(request)
  }

  private func routes(_ gates: RouteGates) throws -> SessionRoutes {
    SessionRoutes(try SessionCatalog(of: scratch.path), scratch: scratch.path, version: "1", gates)
  }

  @Test(arguments: SessionRoutes.table) func everyRouteButPagesPassesAGate(route: Route) throws {
    let full = answer(route, try routes(RouteGates { _ in (0, 0) }))
    #expect((full.status != 503) == route.isPage, "\(route.pattern): \(full.status)")
    guard !route.isPage else { return }
    #expect(full.headers.contains { $0 == ("Retry-After", "5") }, "\(route.pattern)")
    // A gate that has places answers, if only that there is no such session.
    #expect([200, 404].contains(answer(route, try routes(RouteGates())).status), "\(route.pattern)")
    #expect(answer(route, try routes(RouteGates()), isGone: true).status == 499, "\(route.pattern)")
  }

  /// The disk has too little room before a film is begun, or while it is made.
  @Test func filmLeavesTheFreeSpaceOfItsDisk() throws {
    let package = try GrowingPackage()
    try package.publish(0..<15, package.views())
    let minimum = 1 << 40
    let answers = Mutex<[Int]>([])
    var freeSpace = FreeSpace(minimum: minimum)
    freeSpace.freeBytes = { _ in answers.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] } }
    func answer(_ free: Int...) throws -> HTTPResponse {
      answers.withLock { $0 = free }
      let routes = SessionRoutes(
        try SessionCatalog(of: package.output), scratch: scratch.path, freeSpace, version: "1")
      return routes.answer(
        HTTPRequest(
          method: "GET", path: "/sessions/walk/session.mp4", header: { _ in nil }, argument: { _ in nil },
          isAbandoned: { false }))
    }
    let none = try answer(minimum + 10)
    #expect(none.status == 503 && none.headers.contains { $0 == ("Retry-After", "10") }, "\(none.status)")
    let less = try answer(minimum + 1 << 30, minimum - 1)
    #expect(less.status == 503 && less.headers.contains { $0 == ("Retry-After", "30") }, "\(less.status)")
    #expect(try answer(minimum + 1 << 30).status == 200)
    #expect(try names(in: scratch.path).isEmpty)
  }

  @Test(arguments: RouteGates.Name.allCases) func workOfOneKindDoesNotKeepOthersOut(full: RouteGates.Name) throws {
    let routes = try routes(RouteGates { $0 == full ? (0, 0) : $0.limits })
    let refused = SessionRoutes.table.filter { answer($0, routes).status == 503 }
    #expect(!refused.isEmpty && refused.count < SessionRoutes.table.count { !$0.isPage })
  }
}
