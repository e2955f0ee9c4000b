import FrameBatches

/// A batch that this call encodes.
struct SelectedBatch: Sendable {
  /// The path as given; for images, their directory.
  let path: String
  /// The images of the batch, if the call names them one by one.
  var files: [String] = []
  /// The reason why the batch cannot be encoded.
  var refusal: BadBatch?
}
