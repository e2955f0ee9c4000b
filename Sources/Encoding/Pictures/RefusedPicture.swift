import FrameBatches

/// The reason why an image file is not shown.
struct RefusedPicture: Error, Equatable {
  let refusal: Refusal

  init(_ refusal: Refusal) { self.refusal = refusal }

  init(reason fault: String) { refusal = Refusal(fault, nil) }
}
