// The files of the player, embedded in the program.

import Sessions

enum Assets {
  private static let files: [String: (HTTPResponse.Kind, [UInt8])] = [
    "list.html": (.html, PackageResources.list_html), "player.html": (.html, PackageResources.player_html),
    "style.css": (.css, PackageResources.style_css), "favicon.svg": (.svg, PackageResources.favicon_svg),
    "list.js": (.script, PackageResources.list_js), "map.js": (.script, PackageResources.map_js),
    "media.js": (.script, PackageResources.media_js), "native.js": (.script, PackageResources.native_js),
    "notes.js": (.script, PackageResources.notes_js), "playback.js": (.script, PackageResources.playback_js),
    "part.js": (.script, PackageResources.part_js), "player.js": (.script, PackageResources.player_js),
    "session.js": (.script, PackageResources.session_js),
    "text.js": (.script, PackageResources.text_js), "timeline.js": (.script, PackageResources.timeline_js),
    "touches.js": (.script, PackageResources.touches_js),
  ]

  private static let tags = files.mapValues { Digest.of($0.1) }

  static func page(_ name: String) -> HTTPResponse? {
    files[name].map { HTTPResponse($0.0, $0.1, tag: tags[name]) }
  }

  /// Returns a file that is no page.
  static func file(_ name: String) -> HTTPResponse? { name.hasSuffix(".html") ? nil : page(name) }
}
