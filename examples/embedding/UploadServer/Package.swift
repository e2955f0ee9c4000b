// swift-tools-version: 6.2
// A package of its own, because of Hummingbird. `make lint-examples` builds and runs it.

import PackageDescription

let package = Package(
  name: "UploadServer",
  dependencies: [
    .package(name: "SegmentEncoder", path: "../../.."),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0"),
  ],
  targets: [
    .executableTarget(
      name: "UploadServer",
      dependencies: [
        .product(name: "SegmentEncoder", package: "SegmentEncoder"),
        .product(name: "Hummingbird", package: "hummingbird"),
      ],
      path: ".", sources: ["main.swift", "FormPart.swift"])
  ]
)
