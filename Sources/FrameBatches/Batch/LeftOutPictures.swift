// How many pictures of an input no frame shows, before anything is decoded. A thumbnail or another form of a frame is no picture of its
// own: it is a companion.

import FileSystem

/// The number of pictures beside the frames of a batch.
package struct LeftOutPictures: Sendable, Equatable {
  /// Frames of the session with times that cannot be used.
  package var ofSession = 0
  /// Pictures of the input that are frames of none of its sessions.
  package var ofInput = 0
  /// The frames of the other sessions or parts of the input, beside which ``ofInput`` is to be counted.
  package var framesBeside = 0
  /// Frames of a folder that came too early behind what is published of it.
  package var early = 0
}

extension RefusedFrame {
  /// Whether it came too early behind what is published.
  package var isEarly: Bool { if case .early = kind { true } else { false } }

  /// Whether it lies in a folder, where no format looks for it.
  var isInFolder: Bool { if case .inFolder = kind { true } else { false } }

  /// Whether it is another form of a picture that is shown.
  package var isCompanion: Bool { if case .sameInstant(isCompanion: true) = kind { true } else { false } }

  /// Whether it is a picture that would have been a frame, by its kind or its name.
  package var isPicture: Bool {
    switch kind {
    case .undecoded, .record, .early: true
    case .sameInstant(let isCompanion): !isCompanion
    case .copy: false
    // Other programs hide what is no picture of its own behind a point.
    case .otherName, .inFolder, .other:
      PictureNames.isPicture(source) && !source.split(separator: "/").contains { $0.hasPrefix(".") }
    }
  }
}

extension Frame {
  /// Whether another file of its instant is another form of it, by its name.
  package func isNamed(like other: Frame) -> Bool {
    PictureNames.parts(of: fullName).stem == PictureNames.parts(of: other.fullName).stem
  }
}
