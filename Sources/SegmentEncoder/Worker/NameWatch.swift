import FileSystem
import FrameBatches
import Logging
import Sessions

/// Looks once in a worker's run for batches that became sessions of their own, and whose names are those of parts of one recording.
final class NameWatch: Sendable {
  /// nil once advice is given.
  private let names = Monitor<PartNameAdvice?>(PartNameAdvice())

  /// Remembers a batch that is published, and logs advice on its name and the earlier ones if there is any.
  func note(_ batch: BatchEncoder.ReadBatch, _ receipts: [Receipt], _ logger: Logger) {
    let named = batch.batches.filter { $0.namesake != nil }
    guard !named.isEmpty, receipts.contains(where: { $0.refusal == nil }) else { return }
    let advice: String? = names.change { names in
      guard var known = names.take() else { return nil }
      let mayAdvise = named.reduce(false) { known.add($1) || $0 }
      let advice = mayAdvise ? known.text : nil
      if advice == nil { names = known }
      return advice
    }
    if let advice { logger.warning("session.unjoined", metadata: ["advice": "\(advice)"]) }
  }
}
