import FileSystem
import FrameBatches

/// The sessions of the folders that have pictures.
final class SessionTable {
  private let rules: CollectRules
  private let limits: Limits
  private var sessions: [SessionFolder: SessionCollector] = [:]
  /// The sessions' folders by their names, because two folders can have one name.
  private var owners: [String: SessionFolder] = [:]
  /// Folders that have no session.
  private var refused: Set<SessionFolder> = []
  /// The session folders of folders.
  private var folders: [String: SessionFolder] = [:]

  init(_ rules: CollectRules, limits: Limits) { (self.rules, self.limits) = (rules, limits) }

  var all: some Collection<SessionCollector> { sessions.values }

  /// Returns the session of a file's folder; the first time, instead of one that it cannot have, the fault.
  func session(of file: FolderFile) -> (SessionCollector?, fault: LeftFile?) {
    let below = FolderTree.folder(of: file)
    let folder = folders[below] ?? SessionFolder(of: below)
    if folders.count > FolderTree.most { folders = [:] }
    folders[below] = folder
    if let session = sessions[folder] { return (session, nil) }
    guard !refused.contains(folder) else { return (nil, nil) }
    if let fault = fault(of: folder) {
      refused.insert(folder)
      return (nil, fault)
    }
    let session = SessionCollector(folder, rules, limits: limits)
    sessions[folder] = session
    return (session, nil)
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
