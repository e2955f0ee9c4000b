/// All formats.
enum FormatList {
  /// The formats, in the order in which they are asked. The first one that recognises the batch reads it, so the order matters.
  ///
  /// `batch.json` comes first, because it overrides all names. Videos follow, which no other format reads, and histories of browser-use, beside
  /// which an animation may lie. The formats that only the user selects come next. The formats of
  /// recorders follow, because each has a distinctive file or naming. The formats that look at names alone are last: they would
  /// also take batches of the formats before them, without the facts in the side files.
  static var all: [any BatchFormat.Type] {
    [
      NativeFormat.self,
      FinishedSegmentsFormat.self,
      BrowserUseFormat.self,
      SequenceFormat.self,
      NumberedFormat.self,
      ModifiedTimesFormat.self,
      ExifTimesFormat.self,
      ListedTimesFormat.self,
      DescribedNamesFormat.self,
      SentryCocoaFormat.self,
      SentryAndroidFormat.self,
      OpenReplayFramesFormat.self,
      RejourneyFramesFormat.self,
      RecorderTarFormat.self,
      RejourneySpillFormat.self,
      RRWebFormat.self,
      ScreencastFormat.self,
      PictureLinesFormat.self,
      PlaywrightFormat.self,
      CuaFormat.self,
      OSWorldFormat.self,
      NamedTimesFormat.self,
      PlainFormat.self,
    ]
  }
}
