import Foundation
import TestSupport
import Testing

/// Image archives of two architectures, and the archive that joins them.
@Suite struct ImageArchiveTests {
  private let scratch: ScratchDirectory
  private let architectures = ["amd64", "arm64"]

  init() throws {
    scratch = try ScratchDirectory()
    for architecture in architectures {
      let documents = "\(architecture)/usr/share/doc/encoder-worker"
      for folder in ["\(architecture)/usr/bin", documents] { _ = try scratch.directory(folder) }
      _ = try scratch.file("\(architecture)/usr/bin/encoder-worker", Array(architecture.utf8))
      let sbom = #"{"packages": [{"name": "encoder-worker", "versionInfo": "1.0"}]}"#
      _ = try scratch.file("\(documents)/encoder-worker.spdx.json", Array(sbom.utf8))
    }
  }

  private static func script(_ name: String) -> String {
    Fixture.root.appendingPathComponent("packaging/\(name)").path
  }

  /// Makes an archive of a root with one file, and returns its path.
  private func archive(_ architecture: String, revision: String = "one") throws -> String {
    let path = scratch.path("\(architecture).oci.tar")
    try Tool.output(
      Self.script("oci.py"), [scratch.path(architecture), path, "1.0", architecture, "1700000000", revision])
    return path
  }

  private func join(_ archives: [String], into name: String = "joined.oci.tar") throws -> Tool.Result {
    try Tool.run(Self.script("image-index"), [scratch.path(name)] + archives)
  }

  /// Unpacks the image of an architecture from the joined archive; returns the archive's images, and the program's bytes.
  private func unpack(_ architecture: String) throws -> (images: String, program: String?) {
    let (layout, work) = try (scratch.directory("layout"), scratch.directory("work-\(architecture)"))
    try Tool.output("tar", ["-xf", scratch.path("joined.oci.tar"), "-C", layout])
    try Tool.output(Self.script("unpack_image.py"), [layout, architecture, work])
    return (
      try String(contentsOfFile: work + "/architectures", encoding: .utf8),
      try? String(contentsOfFile: work + "/root/usr/bin/encoder-worker", encoding: .utf8)
    )
  }

  @Test func joinedArchiveHasTheImageOfEachArchitecture() throws {
    let result = try join(architectures.map { try archive($0) })
    #expect(result.status == 0, "\(result.errors)")
    for architecture in architectures {
      let found = try unpack(architecture)
      #expect(found.images == "amd64\narm64\n")
      #expect(found.program == architecture)
    }
    #expect(try unpack("riscv64").program == nil)
  }

  @Test func joinedArchiveDoesNotDependOnTheOrderOfItsParts() throws {
    let parts = try architectures.map { try archive($0) }
    #expect(try join(parts).status == 0)
    #expect(try join(parts.reversed(), into: "other.oci.tar").status == 0)
    #expect(
      try Data(contentsOf: URL(fileURLWithPath: scratch.path("joined.oci.tar")))
        == Data(contentsOf: URL(fileURLWithPath: scratch.path("other.oci.tar"))))
  }

  @Test func archivesOfDifferentCommitsAreNotJoined() throws {
    let result = try join([archive("amd64"), archive("arm64", revision: "two")])
    #expect(result.status == 65 && result.errors.contains("make both of the same commit"), "\(result.errors)")
    #expect(!FileManager.default.fileExists(atPath: scratch.path("joined.oci.tar")))
  }

  @Test func twoArchivesOfOneArchitectureAreNotJoined() throws {
    let path = try archive("amd64")
    let result = try join([path, path])
    #expect(result.status == 65 && result.errors.contains("both for amd64"), "\(result.errors)")
  }

  @Test func damagedArchiveIsNotJoined() throws {
    let parts = try architectures.map { try archive($0) }
    var bytes = try Data(contentsOf: URL(fileURLWithPath: parts[1]))
    let place = try #require(bytes.range(of: Data("10001".utf8)))
    bytes[place.lowerBound] = UInt8(ascii: "0")
    try bytes.write(to: URL(fileURLWithPath: parts[1]))
    let result = try join(parts)
    #expect(result.status == 65 && result.errors.contains("has another digest"), "\(result.errors)")
  }
}
