// swift-tools-version: 6.2

import PackageDescription

/// Treats warnings as errors in our own checks only: a newer compiler may add warnings, which must not break a user's
/// build.
let strict: [SwiftSetting] =
  Context.environment["WARNINGS_AS_ERRORS"] == nil ? [] : [.treatAllWarnings(as: .error)]

/// The modules that parse input from others mark each use of memory that the compiler cannot check with `unsafe`.
let parsing: [SwiftSetting] = strict + [.strictMemorySafety()]

/// Tests are not optimised, and compile file by file, so that a changed test builds in seconds. The program under test
/// and TestSupport, which computes a lot, are optimised.
let test: [SwiftSetting] =
  strict + [
    .unsafeFlags(["-Onone", "-no-whole-module-optimization", "-enable-batch-mode", "-incremental", "-num-threads", "0"])
  ]

/// `Fuzzing` is a package of its own, and reads replies with this module.
let fuzzed: [Product] =
  Context.environment["FUZZING"] == nil ? [] : [.library(name: "Remote", targets: ["Remote"])]

/// The modules of the library, which its tests import.
let layers: [Target.Dependency] = [
  "FileSystem", "JSON", "ISOMedia", "FrameBatches", "Encoding", "Sessions", "Films", "Showing", "Notifying",
  "WorkQueues",
]

/// Returns a target of tests, which imports the given modules and TestSupport.
func tests(_ name: String, in folder: String = "", of modules: [Target.Dependency] = []) -> Target {
  .testTarget(
    name: name, dependencies: modules + ["TestSupport"], path: "Tests/\(folder)\(name)", swiftSettings: test)
}

let package = Package(
  name: "SegmentEncoder",
  products: [
    .library(name: "SegmentEncoder", targets: ["SegmentEncoder"]),
    // For clients that read an object store; it needs libcurl and hiredis.
    .library(name: "SegmentEncoderStore", targets: ["SegmentEncoderStore"]),
    .executable(name: "encoder-worker", targets: ["encoder-worker"]),
  ] + fuzzed,
  // Packages of a trait are fetched only for a client that turns the trait on.
  traits: [
    .trait(name: "ServiceLifecycle", description: "SpoolWorker is a Service of swift-service-lifecycle."),
    .trait(
      name: "Observability",
      description:
        "Workers count in swift-metrics. The steps of a batch are spans of swift-distributed-tracing."
    ),
    .default(enabledTraits: []),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.2.0"),
  ],
  targets: [
    .systemLibrary(
      name: "CFFmpeg",
      pkgConfig: "libavcodec libswscale libavutil",
      providers: [.apt(["libavformat-dev", "libavcodec-dev", "libswscale-dev"])]
    ),
    .systemLibrary(
      name: "CArchive", pkgConfig: "libarchive", providers: [.apt(["libarchive-dev"])]),
    // Without pkgConfig: SwiftPM warns of its flags on some releases.
    .systemLibrary(name: "CLittleCMS", providers: [.apt(["liblcms2-dev"])]),
    .systemLibrary(name: "CNettle", pkgConfig: "nettle", providers: [.apt(["nettle-dev"])]),
    .systemLibrary(name: "CDeflate", pkgConfig: "libdeflate", providers: [.apt(["libdeflate-dev"])]),
    .systemLibrary(name: "CMicroHTTP", providers: [.apt(["libmicrohttpd-dev"])]),
    .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),
    .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CLinux"),
    // Our own C: the compiler turns its loops into vector instructions.
    .target(name: "CPixels"),
    // The layers, lowest first. Each imports only the modules that it lists here.
    .target(name: "FileSystem", dependencies: ["CLinux", "CNettle"], swiftSettings: strict),
    .target(name: "JSON", swiftSettings: parsing),
    .target(name: "ISOMedia", dependencies: ["FileSystem", "CLinux"], swiftSettings: parsing),
    .target(
      name: "FrameBatches", dependencies: ["FileSystem", "JSON", "CArchive", "CZlib", "CLinux"],
      swiftSettings: parsing),
    .target(
      name: "Encoding",
      dependencies: [
        "FileSystem", "JSON", "ISOMedia", "FrameBatches", "CFFmpeg", "CLittleCMS", "CDeflate", "CPixels", "CLinux",
      ],
      swiftSettings: parsing,
      linkerSettings: [.linkedLibrary("lcms2")]
    ),
    .target(
      name: "Sessions",
      dependencies: ["FileSystem", "JSON", "ISOMedia", "FrameBatches", "Encoding", "CLinux"],
      swiftSettings: strict
    ),
    .target(
      name: "Films", dependencies: ["FileSystem", "JSON", "ISOMedia", "FrameBatches", "Encoding", "Sessions"],
      swiftSettings: strict),
    .target(
      name: "Showing",
      dependencies: ["FileSystem", "JSON", "ISOMedia", "FrameBatches", "Encoding", "Sessions", "Films"],
      swiftSettings: strict),
    .target(
      name: "Reencoding",
      dependencies: ["FileSystem", "JSON", "ISOMedia", "FrameBatches", "Encoding", "Sessions", "Films", "Showing"],
      swiftSettings: strict),
    .target(
      name: "Notifying",
      dependencies: [
        "FileSystem", "JSON", "FrameBatches", "Encoding", "Sessions", .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .target(
      name: "WorkQueues",
      dependencies: ["FileSystem", "JSON", "FrameBatches", "Encoding", "Sessions", "Notifying", "CLinux"],
      swiftSettings: strict),
    .target(
      name: "SegmentEncoder",
      dependencies: layers + [
        "CLinux", .product(name: "Logging", package: "swift-log"),
        .product(
          name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["ServiceLifecycle"])),
        .product(name: "Metrics", package: "swift-metrics", condition: .when(traits: ["Observability"])),
        .product(name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Observability"])),
      ],
      swiftSettings: strict
    ),
    .target(
      name: "Batching", dependencies: ["FileSystem", "JSON", "FrameBatches", "WorkQueues"], swiftSettings: strict),
    .target(
      name: "Collecting", dependencies: ["FileSystem", "FrameBatches", "WorkQueues", "Batching", "CLinux"],
      swiftSettings: strict),
    .target(
      name: "Deleting", dependencies: ["FileSystem", "JSON", "FrameBatches", "Sessions", "WorkQueues", "Batching"],
      swiftSettings: strict),
    .target(
      name: "Remote",
      dependencies: [
        "FileSystem", "JSON", "FrameBatches", "Encoding", "Sessions", "Notifying", "WorkQueues", "CHiredis", "CCurl",
        "CLinux",
      ],
      swiftSettings: strict),
    .target(
      name: "SegmentEncoderStore", dependencies: ["FileSystem", "Encoding", "Sessions", "Showing", "Remote"],
      swiftSettings: strict),
    .target(
      name: "Serving",
      dependencies: layers + ["SegmentEncoder", "CMicroHTTP", "CLinux"],
      resources: [.embedInCode("Assets")],
      swiftSettings: strict),
    .target(
      name: "Ingesting",
      dependencies: [
        "FileSystem", "JSON", "FrameBatches", "Encoding", "Sessions", "WorkQueues", "Batching", "Serving", "CLinux",
        .product(name: "Logging", package: "swift-log"),
      ],
      resources: [.embedInCode("Resources")],
      swiftSettings: strict),
    .executableTarget(
      name: "encoder-worker",
      dependencies: layers + [
        "Reencoding", "SegmentEncoder", "Batching", "Collecting", "Deleting", "Remote", "Serving", "Ingesting",
        "CLinux",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict
    ),
    // Each shows one way to embed the library; EmbeddingExampleTests runs them.
    .executableTarget(
      name: "EncodeFrames", dependencies: ["SegmentEncoder"], path: "examples/embedding/EncodeFrames",
      swiftSettings: strict),
    .executableTarget(
      name: "FramesFromMemory", dependencies: ["SegmentEncoder"], path: "examples/embedding/FramesFromMemory",
      swiftSettings: strict),
    .executableTarget(
      name: "FirstSegment", dependencies: ["SegmentEncoder"], path: "examples/embedding/FirstSegment",
      swiftSettings: strict),
    .executableTarget(
      name: "LiveHLS", dependencies: ["SegmentEncoder"], path: "examples/embedding/LiveHLS", swiftSettings: strict),
    .executableTarget(
      name: "OwnStore", dependencies: ["SegmentEncoder"], path: "examples/embedding/OwnStore", swiftSettings: strict),
    .executableTarget(
      name: "RunWorker",
      dependencies: ["SegmentEncoder", .product(name: "Logging", package: "swift-log")],
      path: "examples/embedding/RunWorker", swiftSettings: strict),
    .executableTarget(
      name: "ShowSessions", dependencies: ["SegmentEncoder"], path: "examples/embedding/ShowSessions",
      swiftSettings: strict),
    .executableTarget(
      name: "ShowStore", dependencies: ["SegmentEncoder", "SegmentEncoderStore"], path: "examples/embedding/ShowStore",
      swiftSettings: strict),
    .target(
      name: "TestSupport", dependencies: layers + ["SegmentEncoder", "CLinux"], path: "Tests/TestSupport",
      swiftSettings: strict),
    // A program that breaks streams off; StreamFailureTests runs it.
    .executableTarget(
      name: "BrokenStreams", dependencies: ["FileSystem", "SegmentEncoder", "CLinux"], path: "Tests/BrokenStreams",
      swiftSettings: strict),
    // Unit tests: a target for each module.
    tests("FileSystemTests", of: ["FileSystem"]),
    tests("JSONTests", of: ["JSON"]),
    tests("ISOMediaTests", of: ["FileSystem", "ISOMedia", "FrameBatches", "Encoding", "CFFmpeg"]),
    tests("FrameBatchesTests", of: ["FileSystem", "JSON", "FrameBatches", "Encoding", "Sessions", "SegmentEncoder"]),
    tests("EncodingTests", of: layers + ["SegmentEncoder", "CFFmpeg", "CDeflate", "CPixels", "CZlib", "CLinux"]),
    tests("SessionsTests", of: layers + ["SegmentEncoder"]),
    tests("FilmsTests", of: layers + ["SegmentEncoder"]),
    tests("ShowingTests", of: layers + ["SegmentEncoder"]),
    tests("ReencodingTests", of: layers + ["Reencoding"]),
    tests("NotifyingTests", of: layers + ["SegmentEncoder", .product(name: "Logging", package: "swift-log")]),
    tests("WorkQueuesTests", of: layers + ["SegmentEncoder"]),
    tests(
      "SegmentEncoderTests",
      of: layers + ["SegmentEncoder", "BrokenStreams", .product(name: "Logging", package: "swift-log")]),
    tests("BatchingTests", of: ["FileSystem", "JSON", "FrameBatches", "WorkQueues", "Batching"]),
    tests("CollectingTests", of: ["FileSystem", "JSON", "FrameBatches", "WorkQueues", "Batching", "Collecting"]),
    tests(
      "DeletingTests",
      of: layers + ["SegmentEncoder", "Deleting", .product(name: "Logging", package: "swift-log")]),
    // The promises of every queue and every store.
    tests(
      "ContractTests",
      of: layers + ["SegmentEncoder", "Deleting", "Remote", .product(name: "Logging", package: "swift-log")]),
    tests("RemoteTests", of: layers + ["SegmentEncoder", "Remote"]),
    tests("ServingTests", of: layers + ["SegmentEncoder", "Serving"]),
    tests(
      "IngestingTests",
      of: [
        "FileSystem", "JSON", "FrameBatches", "Sessions", "WorkQueues", "Batching", "Serving", "Ingesting",
        .product(name: "Logging", package: "swift-log"),
      ]),
    tests("EncoderWorkerTests", of: ["FileSystem", "Notifying", "SegmentEncoder", "Remote", "encoder-worker"]),
    // End-to-end tests run the program.
    tests(
      "ProgramTests", in: "EndToEnd/",
      of: [
        "FileSystem", "EncodeFrames", "FirstSegment", "FramesFromMemory", "LiveHLS", "OwnStore", "RunWorker",
        "ShowSessions",
      ]),
    tests("InputTests", in: "EndToEnd/", of: ["JSON", "ISOMedia"]),
    tests(
      "FinishedSessionTests", in: "EndToEnd/",
      of: ["FileSystem", "JSON", "FrameBatches", "Encoding", "Sessions", "Showing"]),
    tests(
      "ServiceTests", in: "EndToEnd/",
      of: [
        "FileSystem", "JSON", "Notifying", "SegmentEncoder", "CLinux", .product(name: "Logging", package: "swift-log"),
      ]),
    tests(
      "RemoteServiceTests", in: "EndToEnd/",
      of: ["FileSystem", "JSON", "FrameBatches", "Remote", "ShowSessions", "ShowStore"]),
    tests("BrowserTests", in: "EndToEnd/"),
    tests("SystemTests", in: "EndToEnd/"),
    .target(
      name: "FuzzTargets", dependencies: layers + ["SegmentEncoder", "Remote", "CDeflate", "CFFmpeg", "CLinux"],
      path: "Fuzzing/Sources/FuzzTargets", swiftSettings: strict),
    tests("FuzzTests", of: ["Encoding", "Sessions", "WorkQueues", "FuzzTargets"]),
  ]
)
