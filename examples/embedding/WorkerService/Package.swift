// swift-tools-version: 6.2
// A package of its own, because it turns the traits of the library on. `make lint-examples` builds and runs it.

import PackageDescription

let package = Package(
  name: "WorkerService",
  dependencies: [
    .package(name: "SegmentEncoder", path: "../../..", traits: ["ServiceLifecycle", "Observability"]),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.3.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
  ],
  targets: [
    .executableTarget(
      name: "WorkerService",
      dependencies: [
        .product(name: "SegmentEncoder", package: "SegmentEncoder"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "MetricsTestKit", package: "swift-metrics"),
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      path: ".", sources: ["main.swift"])
  ]
)
