// The pages that are served, bundled with the program.

import SegmentEncoder

enum Assets {
  private static let files: [String: (HTTPReply.Kind, [UInt8])] = [
    "list.html": (.html, PackageResources.list_html), "player.html": (.html, PackageResources.player_html),
    "style.css": (.css, PackageResources.style_css), "list.js": (.script, PackageResources.list_js),
    "player.js": (.script, PackageResources.player_js), "favicon.svg": (.svg, PackageResources.favicon_svg),
  ]

  private static let tags = files.mapValues { Digest.of($0.1) }

  static func page(_ name: String) -> HTTPReply? { reply(name) }

  /// - Returns: nil for pages, and for what is not there.
  static func file(_ name: String) -> HTTPReply? { name.hasSuffix(".html") ? nil : reply(name) }

  private static func reply(_ name: String) -> HTTPReply? {
    files[name].map { HTTPReply($0.0, $0.1, tag: tags[name]) }
  }
}
