// swift-tools-version: 6.2

import PackageDescription

/// A newer compiler may warn where ours does not; so only our own checks turn warnings into errors, never a user's build.
let strict: [SwiftSetting] =
  Context.environment["WARNINGS_AS_ERRORS"] == nil ? [] : [.treatAllWarnings(as: .error)]

/// Tests run beside an optimised program, but are not worth the time of optimising themselves; what they compute (TestSupport)
/// is. They compile file by file, and only those that have changed.
let test: [SwiftSetting] =
  strict + [
    .unsafeFlags(["-Onone", "-no-whole-module-optimization", "-enable-batch-mode", "-incremental", "-num-threads", "0"])
  ]

let package = Package(
  name: "SegmentEncoder",
  products: [
    .library(name: "SegmentEncoder", targets: ["SegmentEncoder"]),
    .executable(name: "encoder-worker", targets: ["encoder-worker"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
  ],
  targets: [
    .systemLibrary(
      name: "CFFmpeg",
      pkgConfig: "libavcodec libswscale libavutil",
      providers: [.apt(["libavformat-dev", "libavcodec-dev", "libswscale-dev"])]
    ),
    .systemLibrary(
      name: "CArchive", pkgConfig: "libarchive", providers: [.apt(["libarchive-dev"])]),
    // Without pkgConfig: on some releases it has flags that SwiftPM warns of.
    .systemLibrary(name: "CLittleCMS", providers: [.apt(["liblcms2-dev"])]),
    .systemLibrary(name: "CNettle", pkgConfig: "nettle", providers: [.apt(["nettle-dev"])]),
    .systemLibrary(name: "CMicroHTTP", providers: [.apt(["libmicrohttpd-dev"])]),
    .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),
    .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CLinux"),
    .target(
      name: "SegmentEncoder",
      dependencies: ["CFFmpeg", "CArchive", "CLittleCMS", "CNettle", "CLinux"],
      path: "Sources",
      exclude: [
        "CFFmpeg", "CArchive", "CLittleCMS", "CNettle", "CMicroHTTP", "CHiredis", "CCurl", "CLinux", "encoder-worker",
        "SegmentEncoder/Documentation.docc",
      ],
      sources: [
        "FileSystem", "JSON", "ISOMedia", "FrameBatches", "Encoding", "Sessions", "WorkQueues", "SegmentEncoder",
      ],
      swiftSettings: strict,
      linkerSettings: [.linkedLibrary("lcms2")]
    ),
    .executableTarget(
      name: "encoder-worker",
      dependencies: [
        "SegmentEncoder", "CLinux", "CMicroHTTP", "CHiredis", "CCurl",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ],
      resources: [.embedInCode("Assets")],
      swiftSettings: strict
    ),
    .target(
      name: "TestSupport", dependencies: ["SegmentEncoder", "CLinux"], path: "Tests/TestSupport",
      swiftSettings: strict),
    .testTarget(
      name: "SegmentEncoderTests",
      dependencies: ["SegmentEncoder", "TestSupport"],
      swiftSettings: test
    ),
    .testTarget(
      name: "EncoderWorkerTests",
      dependencies: ["encoder-worker", "SegmentEncoder", "TestSupport"],
      swiftSettings: test
    ),
    .testTarget(
      name: "SessionTests",
      dependencies: ["encoder-worker", "SegmentEncoder", "TestSupport"],
      swiftSettings: test
    ),
    .testTarget(
      name: "ServiceTests",
      dependencies: ["encoder-worker", "SegmentEncoder", "TestSupport"],
      swiftSettings: test
    ),
    .testTarget(
      name: "RemoteTests",
      dependencies: ["encoder-worker", "SegmentEncoder", "TestSupport"],
      swiftSettings: test
    ),
    .target(
      name: "FuzzTargets", dependencies: ["SegmentEncoder", "CFFmpeg", "CLinux"],
      path: "Fuzzing/Sources/FuzzTargets", swiftSettings: strict),
    .testTarget(
      name: "FuzzTests", dependencies: ["FuzzTargets", "SegmentEncoder", "TestSupport"], swiftSettings: test),
    .testTarget(name: "BrowserTests", dependencies: ["TestSupport"], swiftSettings: test),
    .testTarget(
      name: "SystemTests", dependencies: ["SegmentEncoder", "TestSupport"], swiftSettings: test),
  ]
)
