import Foundation
import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions
@testable import Showing

/// Each change of a manifest changes the digest that clients compare.
@Suite struct PlaybackDigestTests {
  /// The same videos with other facts.
  @Test(arguments: [
    #"{"timeZone":"Europe/Berlin"}"#, #"{"pages":[[0,"https://a.example/"]]}"#,
    #"{"touches":{"width":64,"height":48,"events":[[0,"down",0,1,1]]}}"#,
  ])
  func otherFactsHaveAnotherDigest(members: String) throws {
    let package = try GrowingPackage()
    try package.publish(0..<5, package.views())
    let session = try package.session
    let directory = SessionDirectory(output: package.output, session: session)
    func digest() throws -> String {
      try #require(try SessionCatalog(of: package.output).playback(of: session)).digest
    }
    let before = try digest()
    #expect(try digest() == before)
    let json = try directory.soundManifest(GrowingPackage.startMs).json
    let further = try #require(try JSONParser.parse(Array(members.utf8)).object)
    try Data(SegmentManifest.text(of: json.setting(further)))
      .write(to: URL(fileURLWithPath: directory.path + "/" + SegmentName.manifest(GrowingPackage.startMs)))
    #expect(try digest() != before)
  }
}
