import Batching
import FileSystem
import FrameBatches

/// The sessions of the folders that have pictures.
final class SessionTable {
  private let rules: CollectRules
  private var sessions: Set<SessionFolder> = []
  /// The sessions' folders by their names, because two folders can have one name.
  private var owners: [String: SessionFolder] = [:]
  /// Folders that have no session.
  private var refused: Set<SessionFolder> = []
  /// The session folders of folders.
  private var folders: [String: SessionFolder] = [:]

  init(_ rules: CollectRules) { self.rules = rules }

  /// Returns the session folder of a folder.
  func folder(of below: String) -> SessionFolder {
    if let folder = folders[below] { return folder }
    if folders.count > FolderTree.most { folders = [:] }
    let folder = SessionFolder(of: below)
    folders[below] = folder
    return folder
  }

  /// Returns the session folder of a file that has a session; the first time, instead of one that it cannot have, the fault.
  func session(of file: FolderFile) -> (SessionFolder?, fault: LeftFile?) {
    let folder = folder(of: FolderTree.folder(of: file))
    if sessions.contains(folder) { return (folder, nil) }
    guard !refused.contains(folder) else { return (nil, nil) }
    if let fault = fault(of: folder) {
      refused.insert(folder)
      return (nil, fault)
    }
    sessions.insert(folder)
    return (folder, nil)
  }

  private func fault(of folder: SessionFolder) -> LeftFile? {
    guard !folder.isTop else { return nil }
    let name = folder.session(below: rules.session)
    // The names of periods are longer.
    guard SessionID(name + (rules.period == nil ? "" : "-2026-01-08T08")) != nil else {
      let usable = CollectRules.sessionBase(ofFolder: name.replacing("/", with: "."))
      return LeftFile(
        name: folder.path, reason: "the session id \"\(name)\" cannot be used; \(SessionID.rule)",
        advice: "rename the folder, for example to \(usable), or collect it alone with --session \(usable)")
    }
    if let owner = owners[name] {
      return LeftFile(
        name: folder.path, reason: "the folder \(owner.path) has the session \(name)", advice: "rename one of them")
    }
    owners[name] = folder
    return nil
  }
}
