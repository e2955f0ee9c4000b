import FileSystem

/// The names of frames, to recognise their companions by.
struct CompanionNames {
  private var stems: Set<Substring> = []

  init(of drafts: [BatchDraft]) {
    for draft in drafts {
      for frame in draft.frames { stems.formUnion(frame.paths.lazy.map { PictureNames.parts(of: $0).stem }) }
    }
  }

  /// Whether a file is another form of a frame: of the same name in another folder, or with another suffix; or in a folder that is
  /// called like the frame.
  func include(_ path: String) -> Bool {
    path.split(separator: "/").contains { stems.contains(PictureNames.parts(of: String($0)).stem) }
  }

  /// Returns the pictures that are no companions.
  static func pictures(in refused: [RefusedFrame], of drafts: [BatchDraft]) -> [RefusedFrame] {
    let pictures = refused.filter(\.isPicture)
    guard !pictures.isEmpty else { return [] }
    let names = CompanionNames(of: drafts)
    return pictures.filter { !names.include($0.source) }
  }
}
