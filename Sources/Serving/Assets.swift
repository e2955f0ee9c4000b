// The files of the player, embedded in the program.

import Sessions
import Showing

enum Assets {
  private static let files: [String: (HTTPResponse.Kind, [UInt8])] = [
    "captions.js": (.script, PackageResources.captions_js),
    "card.js": (.script, PackageResources.card_js),
    "changes.js": (.script, PackageResources.changes_js),
    "choice.js": (.script, PackageResources.choice_js),
    "compare.css": (.css, PackageResources.compare_css),
    "compare.html": (.html, PackageResources.compare_html),
    "compare.js": (.script, PackageResources.compare_js),
    "facts.js": (.script, PackageResources.facts_js),
    "favicon.svg": (.svg, PackageResources.favicon_svg),
    "filmmap.js": (.script, PackageResources.filmmap_js),
    "filmtime.js": (.script, PackageResources.filmtime_js),
    "follow.js": (.script, PackageResources.follow_js),
    "groups.js": (.script, PackageResources.groups_js),
    "jump.js": (.script, PackageResources.jump_js),
    "keys.js": (.script, PackageResources.keys_js),
    "lanes.js": (.script, PackageResources.lanes_js),
    "list.css": (.css, PackageResources.list_css),
    "list.html": (.html, PackageResources.list_html),
    "list.js": (.script, PackageResources.list_js),
    "listing.js": (.script, PackageResources.listing_js),
    "map.js": (.script, PackageResources.map_js),
    "media.js": (.script, PackageResources.media_js),
    "native.js": (.script, PackageResources.native_js),
    "notes.js": (.script, PackageResources.notes_js),
    "pairline.js": (.script, PackageResources.pairline_js),
    "pane.js": (.script, PackageResources.pane_js),
    "part.js": (.script, PackageResources.part_js),
    "playback.js": (.script, PackageResources.playback_js),
    "player.css": (.css, PackageResources.player_css),
    "player.html": (.html, PackageResources.player_html),
    "player.js": (.script, PackageResources.player_js),
    "preview.js": (.script, PackageResources.preview_js),
    "screen.js": (.script, PackageResources.screen_js),
    "server.js": (.script, PackageResources.server_js),
    "session.js": (.script, PackageResources.session_js),
    "share.js": (.script, PackageResources.share_js),
    "state.js": (.script, PackageResources.state_js),
    "style.css": (.css, PackageResources.style_css),
    "text.js": (.script, PackageResources.text_js),
    "time.js": (.script, PackageResources.time_js),
    "timeline.js": (.script, PackageResources.timeline_js),
    "touches.js": (.script, PackageResources.touches_js),
    "words.js": (.script, PackageResources.words_js),
  ]

  private static let tags = files.mapValues { Digest.of($0.1) }

  static func page(_ name: String) -> HTTPResponse? {
    files[name].map { HTTPResponse($0.0, $0.1, tag: tags[name]) }
  }

  /// Returns a file that is no page.
  static func file(_ name: String) -> HTTPResponse? { name.hasSuffix(".html") ? nil : page(name) }
}
