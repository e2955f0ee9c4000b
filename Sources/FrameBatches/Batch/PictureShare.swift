/// How many of a batch's pictures are not shown.
package struct PictureShare: Sendable, Equatable {
  package let lost: Int
  package let total: Int

  package init(lost: Int, total: Int) { (self.lost, self.total) = (lost, total) }

  /// Whether so many are lost that the batch must not be removed as published.
  package var isMostlyLost: Bool { 2 * lost > total }

  /// Returns the shares that decide on a session: its own, and that of the whole input beside it.
  ///
  /// - Parameter hidden: the number of the batch's frames that are not shown.
  package static func all(of batch: Batch, hidden: Int) -> [PictureShare] {
    let leftOut = batch.leftOut
    let own = PictureShare(lost: hidden + leftOut.ofSession, total: batch.frames.count + leftOut.ofSession)
    let whole = PictureShare(
      lost: own.lost + leftOut.ofInput, total: own.total + leftOut.ofInput + leftOut.framesBeside)
    return [whole, own]
  }
}

extension Collection {
  /// Whether the elements are so many of a batch's that a warning has to count them: a tenth, or 20.
  func isMany(of total: Int) -> Bool { count >= 2 && (10 * count >= total || count >= 20) }
}
