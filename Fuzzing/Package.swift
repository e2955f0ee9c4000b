// swift-tools-version: 6.2
// A package of its own: it links only with the sanitizers that `scripts/fuzz` gives. SwiftPM tells packages apart by the
// names of their directories, so it is called what a clone of this repository hardly is.

import PackageDescription

let strict: [SwiftSetting] =
  Context.environment["WARNINGS_AS_ERRORS"] == nil ? [] : [.treatAllWarnings(as: .error)]

let package = Package(
  name: "Fuzzing",
  dependencies: [.package(name: "SegmentEncoder", path: "..")],
  targets: [
    .systemLibrary(name: "CLibFuzzer"),
    .executableTarget(
      name: "fuzz", dependencies: ["CLibFuzzer", .product(name: "SegmentEncoder", package: "SegmentEncoder")],
      // FuzzTargets is also a module of the main package, whose tests replay seeds and former findings.
      path: "Sources", exclude: ["CLibFuzzer"], sources: ["fuzz", "FuzzTargets"], swiftSettings: strict),
  ]
)
