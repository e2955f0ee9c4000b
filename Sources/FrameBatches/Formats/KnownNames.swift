// The names of known recorders. To add one, add a row.

import FileSystem

extension NamedTimesFormat {
  /// A kind of file names that contain the capture time.
  struct Naming {
    let patterns: [NamePattern]
    /// The suffix that the recorder writes; nil for any.
    var suffix: String?
    /// Whether files lie in a folder named by their day.
    var isInDayFolder = false
    /// The prefix of the session's key, which the pattern's group completes; nil if the group is the session.
    var keyPrefix: String?
    /// Whether the seconds need a fraction.
    private var needsFraction = false
    /// Whether the text beside the time may tell the camera or the screen. Telephones write the program on screen there.
    private(set) var tellsSource = true
    /// Whether the patterns are ours, and not those of the user.
    private(set) var isKnown = true

    init(
      _ patterns: String..., suffix: String? = nil, isInDayFolder: Bool = false, keyPrefix: String? = nil,
      needsFraction: Bool = false, tellsSource: Bool = true
    ) {
      self.patterns = patterns.compactMap { NamePattern($0) }
      (self.suffix, self.isInDayFolder, self.keyPrefix) = (suffix, isInDayFolder, keyPrefix)
      (self.needsFraction, self.tellsSource) = (needsFraction, tellsSource)
    }

    init(_ patterns: [NamePattern]) { self.patterns = patterns }

    /// The names that a user describes.
    init(describedBy pattern: NamePattern) { (patterns, isKnown, tellsSource) = ([pattern], false, false) }

    /// - Parameter batch: the name of the batch, which may be the folder that tells the day.
    func match(_ path: String, in batch: String) -> (pattern: NamePattern, match: NamePattern.Match)? {
      if let wanted = suffix, wanted != PictureNames.parts(of: path).suffix { return nil }
      if isInDayFolder, !NamedTimesFormat.isInDayFolder(path) { return nil }
      let stem = "\(batch)/\(PictureNames.stem(of: path))"
      for pattern in patterns {
        guard let match = pattern.match(stem), !needsFraction || match.hasFraction else { continue }
        // Read by a 24-hour clock, an afternoon would be twelve hours off.
        if isKnown, pattern.hasHours, NameAdvice.isHalfDay(path) { continue }
        return (pattern, match)
      }
      return nil
    }

    /// The names of known recorders. Of two kinds that read as many names, the first one counts.
    static let known = recorders + screenshots + cameras

    /// Recorders of screens, agents and cameras.
    private static let recorders = [
      // screenpipe: a session a monitor.
      Naming("%Q_m%g", keyPrefix: "m"),
      // omi.
      Naming("%Q", isInDayFolder: true),
      // Frigate's preview cache: a session a camera.
      Naming("preview_%g-%s", suffix: "webp"),
      // OpenRecall, with and without (older versions) the monitor.
      Naming("%s_%g", suffix: "webp", keyPrefix: "m"),
      Naming("%s", suffix: "webp"),
      // Programs in Python: `time.time()`.
      Naming("%s", needsFraction: true),
      // Pensieve: a session a screen.
      Naming("screenshot-%Y%m%d-%H%M%S-of-%g", suffix: "webp", keyPrefix: "m"),
      // Trajectories of OSWorld's agents.
      Naming("step_%q_%Y%m%d@%H%M%S%f", "step_%q_%Y%m%d@%H%M%S"),
      Naming(ISOTime.patterns),
      // motion: the event, the time, the number within the second.
      Naming("%*-%Y%m%d%H%M%S-%q"),
    ]

    /// The names of screenshots on desktops and telephones.
    private static let screenshots = [
      // macOS in any language: `Screenshot 2026-01-08 at 9.05.12 AM (2)`, `スクリーンショット 2026-01-08 午前9.05.12`.
      Naming(
        "%* %Y-%m-%d%*%-I.%M.%S %p[ (%q)]", "%* %Y-%m-%d%*%-I.%M.%S%p[ (%q)]", "%* %Y-%m-%d %p[ ]%-I.%M.%S[ (%q)]",
        "%* %Y-%m-%d%*%-H.%M.%S[ (%q)]"),
      // Windows, then GNOME.
      Naming("%* %Y-%m-%d %H%M%S[ (%q)]"),
      Naming("%* %Y-%m-%d %H-%M-%S[-%q]"),
      // Android of several makers, and Spectacle of KDE.
      Naming(
        "Screenshot_%Y%m%d-%H%M%S[_%*][~%q]", "Screenshot_%Y%m%d_%H%M%S[_%*][~%q]",
        "Screenshot_%Y-%m-%d-%H-%M-%S-%L[_%*]", "Screenshot_%Y-%m-%d-%H-%M-%S[_%*]", tellsSource: false),
      // ShareX.
      Naming("[%*_]%Y-%m-%d_%H-%M-%S[_%q]"),
    ]

    /// The names and folders of cameras.
    private static let cameras = [
      // Allsky.
      Naming("image-%Y%m%d%H%M%S"),
      // motionEye.
      Naming("%Y-%m-%d/%H-%M-%S"),
      // Dahua.
      Naming("%Y-%m-%d/%*/jpg/%H/%M/%S[%[%*]"),
      // Yi.
      Naming("%YY%mM%dD%HH/%MM%SS"),
    ]
  }
}
