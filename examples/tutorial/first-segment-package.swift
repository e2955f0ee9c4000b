// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "FirstSegment",
  dependencies: [.package(url: "https://…/SegmentEncoder", branch: "main")],
  targets: [
    .executableTarget(
      name: "FirstSegment", dependencies: [.product(name: "SegmentEncoder", package: "SegmentEncoder")])
  ]
)
