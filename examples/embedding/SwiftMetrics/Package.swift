// swift-tools-version: 6.2
// A package of its own, so that the library does not depend on swift-metrics. `make lint-examples` builds and runs it.

import PackageDescription

let package = Package(
  name: "SwiftMetrics",
  dependencies: [
    .package(name: "SegmentEncoder", path: "../../.."),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
  ],
  targets: [
    .executableTarget(
      name: "MeasuredWorker",
      dependencies: [
        .product(name: "SegmentEncoder", package: "SegmentEncoder"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Metrics", package: "swift-metrics"),
        .product(name: "MetricsTestKit", package: "swift-metrics"),
      ],
      path: ".", sources: ["SwiftMetrics.swift", "main.swift"])
  ]
)
