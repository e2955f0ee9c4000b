// A folder as a batch. Symbolic links in it are followed only if the user named the folder, and only to files inside of it.

import FileSystem
import Glibc

/// A directory as a batch: its regular files, and those in its folders; if these are no pictures, those in the folders of its folders, and
/// so on.
struct DirectoryContents: BatchContents {
  let names: [String]
  let topNames: [String]
  let refused: [RefusedFrame]
  /// The first folder in a folder. Files in such folders are not read.
  let deeperFolder: String?
  /// The remedy if nothing but ``refused`` entries is there; nil if they have none in common.
  let adviceOnRefused: String?
  let recordings: [String]
  /// The path as given, for the user's shell.
  let place: String
  private let directory: Directory
  /// The names that are symbolic links.
  private let links: Set<String>
  /// Maximum number of folders above a file.
  private static let maximumDepth = 8

  var isLoose: Bool { true }

  init(opening path: String, limits: Limits) throws {
    directory = try Directory(opening: path, followingLinks: limits.followsLinks)
    var listing = FolderListing(of: directory, at: path, limits)
    var folders = try listing.add(directory, folder: "")
    let top = listing.names.count
    // Most recorders put frames at most one level deep. Cameras have a folder for each hour and minute.
    var depth = 0
    while !folders.isEmpty && depth < Self.maximumDepth {
      if depth > 0, listing.hasPictures { break }
      depth += 1
      var deeper: [String] = []
      for folder in folders {
        guard let inner = try? Directory(opening: folder, in: directory) else { continue }
        deeper += try listing.add(inner, folder: folder + "/").map { folder + "/" + $0 }
      }
      folders = deeper
    }
    deeperFolder = folders.first
    let unread = FolderListing.pictures(in: folders, of: directory, at: path, limits, levels: Self.maximumDepth - depth)
    let followed = listing.followedLinks()
    links = Set(followed)
    (refused, adviceOnRefused, recordings) = (listing.refused + unread, listing.adviceOnRefused, listing.recordings)
    place = listing.place
    names = followed.isEmpty ? listing.names : (listing.names + followed).sorted()
    topNames = followed.isEmpty ? Array(names[..<top]) : names.filter { !$0.contains("/") }
  }

  func contents(of name: String, limit: Int) throws -> FileContents? {
    try reading(name) {
      links.contains(name)
        ? try directory.contents(ofLink: name, limit: limit) : try directory.contents(of: name, limit: limit)
    }
  }

  func start(of name: String, count: Int) throws -> [UInt8]? {
    let start = try reading(name) {
      links.contains(name)
        ? try directory.contents(ofLink: name, limit: .max, count: count) : try directory.start(of: name, count: count)
    }
    guard case .bytes(let bytes)? = start else { return nil }
    return bytes
  }

  private func reading(_ name: String, _ body: () throws -> FileContents?) throws -> FileContents? {
    do {
      return try body()
    } catch let failure as DiskError where failure.code == EACCES {
      // An unreadable frame may be a good one, so the batch fails as a whole.
      throw BadBatch(
        "read", name, BadBatch.denied, advice: "make the batch readable for the worker, and send it again")
    } catch let failure as DiskError where failure.code == EAGAIN {
      throw BadBatch("read", name, BadBatch.leased, advice: "send the batch again when no other process uses it")
    }
  }

  func path(of name: String) -> String? { directory.path + "/" + name }

  func modifiedMs(_ name: String) throws -> Int64? {
    var status = stat()
    // A link is as old as its picture.
    let flags = links.contains(name) ? 0 : AT_SYMLINK_NOFOLLOW
    try check("stat", directory.path + "/" + name) { unsafe fstatat(directory.descriptor, name, &status, flags) }
    return WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
  }

  /// Returns the path of a file, as the user would write it.
  func path(of name: String) -> String { directory.path + (directory.path.hasSuffix("/") ? "" : "/") + name }

  /// Returns a shell's pattern of files in the folder, or of those in the folder of the first one.
  ///
  /// - Parameters:
  ///   - names: their paths in the folder; at least one.
  ///   - place: the folder, for the user's shell.
  static func pattern(of names: [String], in place: String) -> String {
    let folder = names[0].split(separator: "/").dropLast().map { String($0).shellWord + "/" }.joined()
    let suffix = lastComponent(of: names[0]).split(separator: ".").dropFirst().last.map { "." + $0 } ?? ""
    let isCommon = suffix.shellWord == suffix && names.allSatisfy { $0.hasSuffix(suffix) }
    return place + (place == "/" ? "" : "/") + folder + "*" + (isCommon ? suffix : "")
  }

  func sideFile(_ name: String, limit: Int) throws -> FileContents? {
    if let inside = try contents(of: name, limit: limit) { return inside }
    let parent = try Directory(opening: DurableFile.parentDirectory(of: directory.path))
    return try parent.contents(of: name, limit: limit)
  }
}

/// The entries of a folder and of the folders in it, as far as they were listed.
private struct FolderListing {
  private(set) var names: [String] = []
  private(set) var refused: [RefusedFrame] = []
  private(set) var recordings: [String] = []
  /// Links to regular files in the folder, and the paths of these there; nil for a path that is not UTF-8.
  private var links: [(name: String, target: String?)] = []
  /// Links to files elsewhere.
  private var outside: [String] = []
  /// The directory that the first link to one elsewhere leads to.
  private var outsideFolder: String?
  private var unreadableNames = 0
  private var count = 0
  private let root: Directory
  private let path: String
  private let limits: Limits

  /// Returns the pictures in folders that are not read: they must not go with the batch in silence.
  ///
  /// - Parameter levels: of folders.
  static func pictures(
    in folders: [String], of root: Directory, at path: String, _ limits: Limits, levels: Int
  ) -> [RefusedFrame] {
    var listing = FolderListing(of: root, at: path, limits)
    var (folders, levels) = (folders, levels)
    while !folders.isEmpty && levels > 0 {
      levels -= 1
      var deeper: [String] = []
      for folder in folders {
        // More entries than the limit are not counted.
        guard let inner = try? Directory(opening: folder, in: root),
          let below = try? listing.add(inner, folder: folder + "/")
        else { continue }
        deeper += below.map { folder + "/" + $0 }
      }
      folders = deeper
    }
    return listing.names.filter(PictureNames.isPicture).map {
      RefusedFrame(source: $0, reason: "in a folder of a folder", kind: .inFolder)
    }
  }

  init(of root: Directory, at path: String, _ limits: Limits) {
    (self.root, self.path, self.limits) = (root, path, limits)
  }

  var hasPictures: Bool {
    names.contains(where: PictureNames.isPicture) || links.contains { PictureNames.isPicture($0.name) }
  }

  /// - Returns: the names of its folders.
  mutating func add(_ directory: Directory, folder: String) throws -> [String] {
    let most = limits.folderEntries
    var folders: [String] = []
    let entries = try directory.entries(limit: most - count)
    count += entries.count
    guard count <= most else {
      throw BadBatch(
        "read", lastComponent(of: path), "more than \(most) entries",
        advice: limits.splitsFolders ? Limits.adviceOnFolders : Limits.advice("entries", isLoose: true))
    }
    for entry in entries {
      let name = folder + entry.name
      guard !isRecorderJunk(entry.name) else {
        if entry.kind == .file, isRecording(entry.name) { recordings.append(name) }
        continue
      }
      guard entry.name.utf8.elementsEqual(entry.bytes) else {
        unreadableNames += 1
        let what = entry.kind == .directory ? "a folder with a name that is not UTF-8" : "a name that is not UTF-8"
        refused.append(RefusedFrame(source: name, reason: what))
        continue
      }
      switch entry.kind {
      case .directory: folders.append(entry.name)
      case .file: names.append(name)
      case .link: try add(link: name)
      // Devices, FIFOs and sockets in folders are no frames.
      case .other where folder.isEmpty: refused.append(RefusedFrame(source: name, reason: "not a regular file"))
      case .other: break
      }
    }
    return folders
  }

  private mutating func add(link name: String) throws {
    // Masks that a link leads to are those of another batch.
    guard limits.followsLinks, !NativeFormat.isDescription(name) else { return refuse(name, FileRefusal.link) }
    switch try root.target(ofLink: name) {
    case .file(let target): links.append((name, target))
    case .fileOutside:
      outside.append(name)
      refuse(name, "a symbolic link that leads out of the folder")
    case .directoryOutside(let target):
      outsideFolder = outsideFolder ?? target
      refuse(name, "a symbolic link to a folder elsewhere")
    case .directory: refuse(name, "a symbolic link to a folder of the batch", .copy)
    case .nothing: refuse(name, "a symbolic link to nothing")
    case .circle: refuse(name, "a symbolic link in a circle")
    case .other: refuse(name, "a symbolic link to no regular file")
    }
  }
  private mutating func refuse(_ name: String, _ reason: String, _ kind: RefusedFrame.Kind = .other) {
    refused.append(RefusedFrame(source: name, reason: reason, kind: kind))
  }

  /// Returns the links that are files of the batch. A link to a file that is in the batch itself is no second picture.
  mutating func followedLinks() -> [String] {
    guard !links.isEmpty else { return [] }
    let own = Set(names)
    var followed: [String] = []
    func isInside(_ link: (name: String, target: String?)) -> Bool {
      !link.name.contains("/") && link.target?.contains("/") == true
    }
    // Links above the folder of the pictures put them into an order.
    let areSequence =
      links.count(where: isInside) >= PictureNames.fewestLinks
      && !names.contains { !$0.contains("/") && PictureNames.isPicture($0) }
    for (name, target) in links {
      if let target, own.contains(target), !(areSequence && isInside((name, target))) {
        refuse(name, "a symbolic link to \(target), a file of the batch", .copy)
      } else {
        followed.append(name)
      }
    }
    return followed
  }

  var adviceOnRefused: String? {
    if unreadableNames > outside.count {
      return "give them names in UTF-8, or give an archive: tar -cf ARCHIVE.tar \(place)"
    }
    if !outside.isEmpty {
      return
        "name the pictures one by one, as \(DirectoryContents.pattern(of: outside, in: place)): links in a folder are followed only inside of it"
    }
    if let outsideFolder { return "give the folder that it leads to: \(outsideFolder.shellWord)" }
    guard !limits.followsLinks, refused.contains(where: { $0.reason == FileRefusal.link }) else { return nil }
    return "send the files themselves: only a folder that a command names may have links, inside of it"
  }

  var place: String {
    let path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    return (path.hasPrefix("-") ? "./" + path : path).shellWord
  }
}
