// swift-tools-version: 6.2
// A separate package, because it links only with the sanitizers that `scripts/fuzz` passes. SwiftPM identifies packages
// by their directory names. A clone of this repository hardly has the name of this directory.

import PackageDescription

let strict: [SwiftSetting] =
  Context.environment["WARNINGS_AS_ERRORS"] == nil ? [] : [.treatAllWarnings(as: .error)]

let package = Package(
  name: "Fuzzing",
  dependencies: [.package(name: "SegmentEncoder", path: "..")],
  targets: [
    .systemLibrary(name: "CLibFuzzer"),
    .executableTarget(
      name: "fuzz",
      dependencies: [
        "CLibFuzzer", .product(name: "SegmentEncoder", package: "SegmentEncoder"),
        // There only with FUZZING=1, which `scripts/fuzz` sets.
        .product(name: "Remote", package: "SegmentEncoder"),
      ],
      // FuzzTargets is also a module of the main package, whose tests replay seeds and former findings.
      path: "Sources", exclude: ["CLibFuzzer"], sources: ["fuzz", "FuzzTargets"], swiftSettings: strict),
  ]
)
